// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/since.h"

#include <ctime>
#include <string>

#include "supervisor/cli/values.h"

namespace muster {

namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr double kMaxAgoS = 10.0 * 365 * 86'400;

std::optional<int64_t> parse_ago(std::string_view text, int64_t now_us) {
  constexpr std::string_view kUnits = "smhd";
  constexpr double kSeconds[] = {1, 60, 3'600, 86'400};
  double unit = 1;
  const size_t at = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (at != std::string_view::npos) {
    unit = kSeconds[at];
    text.remove_suffix(1);
  }
  std::optional<double> count = parse_double(text);
  if (!count || *count < 0) return std::nullopt;
  const double seconds = *count * unit;
  if (seconds > kMaxAgoS) return std::nullopt;
  return now_us - static_cast<int64_t>(seconds * static_cast<double>(kSecondUs));
}

// Reads `text` as `format` and nothing behind it; fields that are not named stay.
bool read_time(const std::string& text, const char* format, std::tm& fields) {
  std::tm read = fields;
  const char* rest = ::strptime(text.c_str(), format, &read);
  if (rest == nullptr || *rest != '\0') return false;
  fields = read;
  return true;
}

std::optional<int64_t> parse_clock(const std::string& text, time_t now) {
  std::tm fields{};
  ::localtime_r(&now, &fields);
  fields.tm_sec = 0;
  if (!read_time(text, "%H:%M:%S", fields) && !read_time(text, "%H:%M", fields)) {
    return std::nullopt;
  }
  fields.tm_isdst = -1;
  std::tm yesterday = fields;
  --yesterday.tm_mday;
  time_t time = ::mktime(&fields);
  if (time > now) time = ::mktime(&yesterday);
  return int64_t{time} * kSecondUs;
}

std::optional<int64_t> parse_date(std::string text) {
  const bool utc = text.ends_with('Z');
  if (utc) text.pop_back();
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm fields{};
    if (!read_time(text, format, fields)) continue;
    fields.tm_isdst = -1;
    const time_t time = utc ? ::timegm(&fields) : ::mktime(&fields);
    if (time < 0) return std::nullopt;
    return int64_t{time} * kSecondUs;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_since(std::string_view text,
                                   std::chrono::system_clock::time_point now) {
  const auto since = std::chrono::floor<std::chrono::microseconds>(now).time_since_epoch();
  const std::string word(trim(text));
  if (auto ago = parse_ago(word, since.count())) return ago;
  if (auto clock = parse_clock(word, since.count() / kSecondUs)) return clock;
  return parse_date(word);
}

}  // namespace muster
