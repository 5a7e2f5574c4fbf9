// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/duration_text.h"

#include <cstdio>
#include <ctime>

namespace muster {

std::string duration_text(int64_t microseconds) {
  int64_t ms = microseconds > 0 ? microseconds / 1000 : 0;
  if (ms < 1000) return std::to_string(ms) + " ms";
  char text[40];
  int64_t seconds = ms / 1000;
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%d.%d s", static_cast<int>(seconds),
                  static_cast<int>(ms % 1000 / 100));
  } else {
    std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                  static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  }
  return text;
}

std::string utc_text(std::chrono::system_clock::time_point time, int digits) {
  auto since = std::chrono::floor<std::chrono::microseconds>(time).time_since_epoch();
  int64_t us = since.count();
  int64_t whole = us / 1'000'000 - (us % 1'000'000 < 0 ? 1 : 0);
  auto part = static_cast<int>(us - whole * 1'000'000);
  time_t seconds = whole;
  std::tm utc{};
  if (!gmtime_r(&seconds, &utc)) return "";
  char date[40], text[60];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof text, "%s.%0*dZ", date, digits, digits == 3 ? part / 1000 : part);
  return text;
}

}  // namespace muster
