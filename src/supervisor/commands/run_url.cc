// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/run_url.h"

#include <algorithm>
#include <cctype>

#include "supervisor/cli/rendezvous_options.h"

namespace muster {

namespace {

constexpr std::string_view kScheme = "http://";

bool is_digit(unsigned char c) {
  return std::isdigit(c) != 0;
}

// The value of token= among the parameters, which are those in front of a "#" or, as the page
// writes them, behind it.
std::string token_in(std::string_view text) {
  constexpr std::string_view kName = "token=";
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    if (at == 0 || (text[at - 1] != '?' && text[at - 1] != '&')) continue;
    std::string_view value = text.substr(at + kName.size());
    return std::string(value.substr(0, value.find_first_of("&#")));
  }
  return "";
}

}  // namespace

bool looks_like_url(std::string_view text) {
  if (text.find("://") != std::string_view::npos) return true;
  text = text.substr(0, text.find_first_of("/?#"));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && std::all_of(port.begin(), port.end(), is_digit);
}

Result<RunUrl> parse_run_url(std::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    if (!text.starts_with(kScheme)) {
      return Error{0, "'" + std::string(text) + "': a run's address begins with http://"};
    }
    text.remove_prefix(kScheme.size());
  }
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  const Result<Endpoint> endpoint = parse_endpoint(std::string(text.substr(0, end)));
  if (!endpoint) return endpoint.error();
  RunUrl url;
  url.host = endpoint->host;
  url.port = endpoint->port.value_or(80);
  url.token = token_in(text.substr(end));
  return url;
}

std::string url_encoded(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    if (std::isalnum(c) != 0 ||
        std::string_view("-_.~").find(static_cast<char>(c)) != std::string_view::npos) {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

}  // namespace muster
