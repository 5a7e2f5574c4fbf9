// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/line_printer.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "supervisor/commands/terminal_text.h"

namespace muster {

namespace {

constexpr const char* kReset = "\033[0m";
constexpr const char* kMatch = "\033[1;31m";
constexpr const char* kFaint = "\033[2m";
// Easy to tell apart on dark and on light.
constexpr std::array kRankColours = {"\033[36m", "\033[33m", "\033[32m",
                                     "\033[35m", "\033[34m", "\033[31m"};

std::string local_time(int64_t time_us) {
  const time_t seconds = time_us / 1'000'000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char date[40], text[60];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &local);
  std::snprintf(text, sizeof text, "%s.%03d", date, static_cast<int>(time_us % 1'000'000 / 1'000));
  return text;
}

std::string json_line(const ShownLine& line,
                      const std::vector<std::pair<size_t, size_t>>* matches) {
  nlohmann::ordered_json json = {{"attempt", line.log.attempt}, {"rank", line.log.rank},
                                 {"stream", line.log.stream},   {"offset", line.offset},
                                 {"number", line.number},       {"time_us", line.time_us},
                                 {"size", line.size},           {"text", line.text}};
  if (matches == nullptr) json["context"] = true;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Of a very long line only the beginning came. (Bytes that are not UTF-8 make the text longer,
// never shorter; of a line that was redrawn it is the end that came.)
std::string left_out(const ShownLine& line) {
  const int64_t more = line.size - static_cast<int64_t>(line.text.size());
  if (more <= 0 || line.text.find('\r') != std::string::npos) return "";
  return " [muster: " + std::to_string(more) + " more bytes]";
}

// Each control byte but the tab as a blank: of the same length, and harmless.
std::string without_controls(std::string text) {
  for (char& c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f') c = ' ';
  }
  return text;
}

std::string marked(std::string_view text, const std::vector<std::pair<size_t, size_t>>& matches) {
  std::string out;
  size_t at = 0;
  for (const auto& [from, to] : matches) {
    if (from < at || to <= from || to > text.size()) continue;
    out.append(text.substr(at, from - at)).append(kMatch);
    out.append(text.substr(from, to - from)).append(kReset);
    at = to;
  }
  return out.append(text.substr(at));
}

}  // namespace

std::string_view last_state(std::string_view line) {
  while (line.ends_with('\r'))
    line.remove_suffix(1);
  const size_t at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

std::string LinePrinter::prefix(const ShownLine& line, char mark) const {
  std::string out;
  if (settings_.timestamps) {
    const std::string time = line.time_us > 0 ? local_time(line.time_us) : std::string(23, '-');
    out += settings_.colour ? kFaint + time + kReset + " " : time + " ";
  }
  if (!settings_.prefix) return out;
  const std::string rank = "[" + std::to_string(line.log.rank) + "]" + mark + " ";
  if (!settings_.colour) return out + rank;
  const auto colour = static_cast<size_t>(line.log.rank) % kRankColours.size();
  return out + kRankColours[colour] + rank + kReset;
}

std::string LinePrinter::shown_text(const ShownLine& line) const {
  std::string_view shown = line.text;
  if (settings_.prefix || settings_.terminal) shown = last_state(shown);
  return settings_.terminal ? only_colours(shown) : std::string(shown);
}

std::string LinePrinter::text(const ShownLine& line,
                              const std::vector<std::pair<size_t, size_t>>& matches) const {
  if (settings_.json) return json_line(line, &matches);
  std::string body;
  if (matches.empty()) {
    body = shown_text(line);
  } else {
    // Places of matches are those of the whole line, so nothing of it may be taken out.
    body = settings_.terminal ? without_controls(line.text) : line.text;
    if (settings_.colour) body = marked(body, matches);
  }
  body += left_out(line);
  // Colours that a worker left on end with its line.
  if (settings_.colour && body.find('\033') != std::string::npos) body += kReset;
  return prefix(line, ':') + body + "\n";
}

std::string LinePrinter::context(const ShownLine& line) const {
  if (settings_.json) return json_line(line, nullptr);
  return prefix(line, '-') + shown_text(line) + "\n";
}

std::string LinePrinter::separator() const {
  if (settings_.json) return "";
  return settings_.colour ? std::string(kFaint) + "--" + kReset + "\n" : "--\n";
}

}  // namespace muster
