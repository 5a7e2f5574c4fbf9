// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/prefix.h"

#include <time.h>

#include <cstdio>

namespace muster {

namespace {

constexpr size_t kTimeLength = sizeof("2026-11-29T12:00:01.123") - 1;

bool starts_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool in_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

// The name that a '$' at the start of `text` refers to, and how many bytes the reference takes;
// empty if there is none.
std::pair<std::string_view, size_t> reference(std::string_view text) {
  bool braced = text.size() > 1 && text[1] == '{';
  size_t begin = braced ? 2 : 1;
  size_t end = begin;
  if (end < text.size() && starts_name(text[end])) {
    while (end < text.size() && in_name(text[end]))
      ++end;
  }
  if (end == begin) return {};
  if (braced && (end == text.size() || text[end] != '}')) return {};
  return {text.substr(begin, end - begin), end + (braced ? 1 : 0)};
}

}  // namespace

Prefix::Prefix(std::string_view pattern, const Values& values) {
  while (!pattern.empty()) {
    size_t dollar = pattern.find('$');
    text_ += pattern.substr(0, dollar);
    if (dollar == std::string_view::npos) return;
    pattern.remove_prefix(dollar);
    if (pattern.substr(0, 2) == "$$") {
      text_ += '$';
      pattern.remove_prefix(2);
      continue;
    }
    auto [name, length] = reference(pattern);
    auto value = values.find(name);
    if (name == "time") {
      times_.push_back(text_.size());
      text_.append(kTimeLength, '-');
    } else if (!name.empty() && value != values.end()) {
      text_ += value->second;
    } else {
      length = length == 0 ? 1 : length;
      text_ += pattern.substr(0, length);
    }
    pattern.remove_prefix(length);
  }
}

std::string_view Prefix::text(std::chrono::system_clock::time_point now) {
  if (times_.empty()) return text_;
  int64_t ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  if (ms != shown_ms_) {
    shown_ms_ = ms;
    time_t seconds = ms / 1000;
    struct tm local;
    localtime_r(&seconds, &local);
    char stamp[kTimeLength + 16];
    size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &local);
    std::snprintf(stamp + length, sizeof stamp - length, ".%03d", static_cast<int>(ms % 1000));
    for (size_t at : times_)
      text_.replace(at, kTimeLength, stamp, kTimeLength);
  }
  return text_;
}

}  // namespace muster
