// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <set>

namespace muster {
namespace {

// A range of devices longer than this is a slip of the keyboard.
constexpr int64_t kMaxDevices = 1024;
constexpr double kMaxSeconds = 366.0 * 24 * 3600;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_device_uuid(std::string_view text) {
  return (text.starts_with("GPU-") || text.starts_with("MIG-")) && text.size() > 4;
}

// One part of --gpus: a number, a range of numbers or a UUID.
Result<std::vector<std::string>> expand_devices(const std::string& part) {
  if (all_digits(part) || is_device_uuid(part)) return std::vector<std::string>{part};
  size_t dash = part.find('-');
  if (dash != std::string::npos && all_digits(part.substr(0, dash)) &&
      all_digits(part.substr(dash + 1))) {
    std::optional<int64_t> first = parse_int(part.substr(0, dash));
    std::optional<int64_t> last = parse_int(part.substr(dash + 1));
    if (first && last && *first <= *last && *last - *first < kMaxDevices) {
      std::vector<std::string> devices;
      for (int64_t n = *first; n <= *last; ++n)
        devices.push_back(std::to_string(n));
      return devices;
    }
  }
  return Error{0,
               "'" + part + "' is no device; expected a list such as 2,4,7 or 0-3 or GPU-<uuid>"};
}

struct SignalName {
  std::string_view name;
  int number;
};
constexpr std::array kSignals = {
    SignalName{"HUP", SIGHUP},       SignalName{"INT", SIGINT},       SignalName{"QUIT", SIGQUIT},
    SignalName{"ILL", SIGILL},       SignalName{"TRAP", SIGTRAP},     SignalName{"ABRT", SIGABRT},
    SignalName{"BUS", SIGBUS},       SignalName{"FPE", SIGFPE},       SignalName{"KILL", SIGKILL},
    SignalName{"USR1", SIGUSR1},     SignalName{"SEGV", SIGSEGV},     SignalName{"USR2", SIGUSR2},
    SignalName{"PIPE", SIGPIPE},     SignalName{"ALRM", SIGALRM},     SignalName{"TERM", SIGTERM},
    SignalName{"STKFLT", SIGSTKFLT}, SignalName{"CHLD", SIGCHLD},     SignalName{"CONT", SIGCONT},
    SignalName{"STOP", SIGSTOP},     SignalName{"TSTP", SIGTSTP},     SignalName{"TTIN", SIGTTIN},
    SignalName{"TTOU", SIGTTOU},     SignalName{"URG", SIGURG},       SignalName{"XCPU", SIGXCPU},
    SignalName{"XFSZ", SIGXFSZ},     SignalName{"VTALRM", SIGVTALRM}, SignalName{"PROF", SIGPROF},
    SignalName{"WINCH", SIGWINCH},   SignalName{"IO", SIGIO},         SignalName{"PWR", SIGPWR},
    SignalName{"SYS", SIGSYS},
};

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\f\v";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    size_t end = text.find(separator, at);
    parts.emplace_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += separator;
    out += part;
  }
  return out;
}

std::optional<int64_t> parse_int(std::string_view text) {
  text = trim(text);
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  bool digit_before = false;
  for (char c : text) {
    if (c == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, c - '0', &value)) return std::nullopt;
    digit_before = true;
  }
  if (!digit_before) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> parse_double(std::string_view text) {
  std::string copy(trim(text));
  // strtod also reads hexadecimal floats, which Python does not.
  if (copy.empty() || copy.find_first_not_of("0123456789+-.eE") != std::string::npos) return {};
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text) {
  std::optional<double> seconds = parse_double(text);
  if (!seconds || *seconds < 0 || *seconds > kMaxSeconds) return std::nullopt;
  return std::chrono::milliseconds(std::llround(*seconds * 1000));
}

std::optional<bool> parse_bool(std::string_view text) {
  std::string word = lower(trim(text));
  for (std::string_view yes : {"true", "t", "yes", "y", "on"}) {
    if (word == yes) return true;
  }
  for (std::string_view no : {"false", "f", "no", "n", "off"}) {
    if (word == no) return false;
  }
  std::optional<int64_t> number = parse_int(word);
  if (!number) return std::nullopt;
  return *number != 0;
}

std::optional<int64_t> parse_size(std::string_view text) {
  std::string word = lower(trim(text));
  size_t digits = word.find_first_not_of("0123456789_");
  std::string unit = digits == std::string::npos ? "" : word.substr(digits);
  std::optional<int64_t> value = parse_int(word.substr(0, digits));
  if (!value) return std::nullopt;
  constexpr std::string_view kUnits = "bkmgt";
  size_t power = 0;
  if (!unit.empty()) {
    power = kUnits.find(unit[0]);
    if (power == std::string_view::npos) return std::nullopt;
    std::string rest = unit.substr(1);
    if (!rest.empty() && (power == 0 || (rest != "b" && rest != "ib"))) return std::nullopt;
  }
  int64_t scale = int64_t{1} << (10 * power);
  if (__builtin_mul_overflow(*value, scale, &*value)) return std::nullopt;
  return value;
}

Result<NodeCount> parse_nnodes(std::string_view text) {
  std::vector<std::string> parts = split(text, ':');
  constexpr int64_t kMax = 1'000'000;
  if (parts.size() > 2) return Error{0, "expected N or MIN:MAX"};
  std::optional<int64_t> low = parse_int(parts.front());
  std::optional<int64_t> high = parse_int(parts.back());
  if (!low || !high) return Error{0, "expected a number of nodes N, or MIN:MAX"};
  if (*low < 1) return Error{0, "a job has at least one node"};
  if (*high < *low) return Error{0, "the minimum is above the maximum"};
  if (*high > kMax) return Error{0, "more than 1000000 nodes"};
  return NodeCount{static_cast<int>(*low), static_cast<int>(*high)};
}

Result<std::vector<std::string>> parse_gpus(std::string_view text) {
  std::vector<std::string> devices;
  std::set<std::string> seen;
  for (const std::string& part : split(text, ',')) {
    Result<std::vector<std::string>> expanded = expand_devices(std::string(trim(part)));
    if (!expanded) return expanded.error();
    for (std::string& device : *expanded) {
      if (!seen.insert(device).second) return Error{0, "device " + device + " is named twice"};
      devices.push_back(std::move(device));
    }
    if (devices.size() > static_cast<size_t>(kMaxDevices)) return Error{0, "too many devices"};
  }
  return devices;
}

std::vector<std::string> parse_needles(std::string_view text) {
  std::vector<std::string> needles(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      needles.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      needles.back() += ',';
      ++i;
    } else {
      needles.emplace_back();
    }
  }
  return needles;
}

std::optional<int> signal_number(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const SignalName& known : kSignals) {
    if (known.name == name) return known.number;
  }
  return std::nullopt;
}

}  // namespace muster
