// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/place.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace muster::comm::detail {

namespace {

constexpr int kMaxPort = 65535;

Error invalid(const std::string& message) {
  return Error{ErrorCode::kInvalidArgument, "joining: " + message};
}

// The whole of `text` as a number; nullopt: it is none or does not fit.
std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A variable that is a number between `least` and `most`; `fallback` where it is not set.
Result<int> variable(const Variables& variables, const char* name, std::optional<int> fallback,
                     int least, int most = std::numeric_limits<int>::max()) {
  const std::optional<std::string> text = variables(name);
  if (!text && fallback) return *fallback;
  if (!text)
    return invalid(std::string(name) +
                   " is not set: start the program with muster or torchrun, or give rank, "
                   "world_size and init_method yourself");
  const std::optional<int> value = number(*text);
  if (value && *value >= least && *value <= most) return *value;
  std::string message = std::string(name) + "='" + *text + "': ";
  if (!value) return invalid(message + "not a number");
  message += most == std::numeric_limits<int>::max()
                 ? "must be at least " + std::to_string(least)
                 : "must be " + std::to_string(least) + " to " + std::to_string(most);
  return invalid(message);
}

Result<int> given_or(const std::optional<int>& given, const char* option,
                     const Variables& variables, const char* name, int least, int most) {
  if (!given) return variable(variables, name, std::nullopt, least, most);
  if (*given >= least && *given <= most) return *given;
  return invalid(std::string(option) + " " + std::to_string(*given) + ": must be " +
                 std::to_string(least) + " to " + std::to_string(most));
}

bool is_true(const std::optional<std::string>& text) {
  std::string lower = text.value_or("");
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return lower == "true" || lower == "1";
}

Result<Venue> tcp_venue(std::string_view rest, const std::string& method) {
  const std::string wanted = "init_method '" + method + "': ";
  const size_t colon = rest.rfind(':');
  const bool bracketed = rest.starts_with('[');
  if (colon == std::string_view::npos || (bracketed && (colon == 0 || rest[colon - 1] != ']')))
    return invalid(wanted + "the port is missing (tcp://host:port)");
  Venue venue;
  venue.host = bracketed ? rest.substr(1, colon - 2) : rest.substr(0, colon);
  if (venue.host.empty()) return invalid(wanted + "the host is missing (tcp://host:port)");
  const std::optional<int> port = number(rest.substr(colon + 1));
  if (!port || *port < 1 || *port > kMaxPort)
    return invalid(wanted + "port '" + std::string(rest.substr(colon + 1)) + "': must be 1 to " +
                   std::to_string(kMaxPort));
  venue.port = *port;
  venue.hosted = true;
  return venue;
}

Result<Venue> env_venue(const Variables& variables) {
  const std::optional<std::string> host = variables("MASTER_ADDR");
  if (!host)
    return invalid(
        "MASTER_ADDR is not set: start the program with muster or torchrun, or give an "
        "init_method of tcp:// or file://");
  const Result<int> port = variable(variables, "MASTER_PORT", std::nullopt, 1, kMaxPort);
  if (!port) return port.error();
  Venue venue;
  venue.host = *host;
  venue.port = *port;
  venue.hosted = !is_true(variables("TORCHELASTIC_USE_AGENT_STORE"));
  return venue;
}

}  // namespace

std::string Venue::to_string() const {
  if (kind == Kind::kFile) return "file://" + path;
  const bool v6 = host.find(':') != std::string::npos;
  return "the store at " + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<std::string> environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

Result<Place> read_place(const JoinOptions& options, const Variables& variables) {
  Place place;
  const Result<int> size =
      given_or(options.world_size, "world_size", variables, "WORLD_SIZE", 1, kMaxWorldSize);
  if (!size) return size.error();
  place.size = *size;
  const Result<int> rank =
      given_or(options.rank, "rank", variables, "RANK", 0, std::numeric_limits<int>::max());
  if (!rank) return rank.error();
  place.rank = *rank;
  if (place.rank >= place.size)
    return invalid((options.rank ? "rank " : "RANK=") + std::to_string(place.rank) + " of " +
                   (options.world_size ? "world_size " : "WORLD_SIZE=") +
                   std::to_string(place.size) + ": must be 0 to " + std::to_string(place.size - 1));
  const Result<int> local_rank = variable(variables, "LOCAL_RANK", 0, 0);
  if (!local_rank) return local_rank.error();
  place.local_rank = *local_rank;
  const Result<int> local_size = variable(variables, "LOCAL_WORLD_SIZE", place.local_rank + 1, 1);
  if (!local_size) return local_size.error();
  place.local_size = *local_size;
  if (place.local_rank >= place.local_size)
    return invalid("LOCAL_RANK=" + std::to_string(place.local_rank) +
                   " of LOCAL_WORLD_SIZE=" + std::to_string(place.local_size) + ": must be 0 to " +
                   std::to_string(place.local_size - 1));
  const Result<int> attempt = variable(variables, "TORCHELASTIC_RESTART_COUNT", 0, 0);
  if (!attempt) return attempt.error();
  place.attempt = *attempt;
  place.run_id = variables("TORCHELASTIC_RUN_ID").value_or("");
  return place;
}

Result<Venue> read_venue(const JoinOptions& options, const Variables& variables) {
  const std::string& method = options.init_method;
  const std::string_view text = method;
  if (text == "env://") return env_venue(variables);
  if (text.starts_with("tcp://")) return tcp_venue(text.substr(6), method);
  if (!text.starts_with("file://"))
    return invalid("init_method '" + method + "': must be env://, tcp://host:port or file:///path");
  Venue venue;
  venue.kind = Venue::Kind::kFile;
  venue.path = text.substr(7);
  if (!venue.path.starts_with('/') || venue.path.ends_with('/'))
    return invalid("init_method '" + method + "': the path of a file is missing (file:///path)");
  return venue;
}

}  // namespace muster::comm::detail
