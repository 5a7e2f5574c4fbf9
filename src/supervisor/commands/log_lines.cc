// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/log_lines.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "supervisor/commands/json_get.h"

namespace muster {

namespace {

using Json = nlohmann::json;

LogName log_of(const Json& json) {
  return {json_get(json, "attempt", 0), json_get(json, "rank", 0),
          json_get(json, "stream", std::string())};
}

// [offset, number, time_us, size, ended, "text", ...]
std::optional<ShownLine> line_of(const Json& json, const LogName& log) {
  if (!json.is_array() || json.size() < 6 || !json[4].is_boolean() || !json[5].is_string()) {
    return std::nullopt;
  }
  for (size_t i = 0; i < 4; ++i) {
    if (!json[i].is_number_integer()) return std::nullopt;
  }
  return ShownLine{log,
                   json[0].get<int64_t>(),
                   json[1].get<int64_t>(),
                   json[2].get<int64_t>(),
                   json[3].get<int64_t>(),
                   json[4].get<bool>(),
                   json[5].get<std::string>()};
}

// Lines around a hit; those that are only text have no place of their own.
std::vector<ShownLine> lines_around(const Json& json, const char* key, const LogName& log) {
  std::vector<ShownLine> lines;
  for (const Json& item : json_part(json, key)) {
    ShownLine line;
    line.log = log;
    line.offset = -1;
    if (item.is_string()) {
      line.text = item.get<std::string>();
      lines.push_back(std::move(line));
    } else if (auto whole = line_of(item, log)) {
      lines.push_back(std::move(*whole));
    }
  }
  return lines;
}

SearchHit hit_of(const Json& json) {
  SearchHit hit;
  hit.line.log = log_of(json);
  hit.line.offset = json_get(json, "offset", int64_t{0});
  hit.line.number = json_get(json, "number", int64_t{-1});
  hit.line.time_us = json_get(json, "time_us", int64_t{0});
  hit.line.text = json_get(json, "text", std::string());
  hit.line.size = json_get(json, "size", static_cast<int64_t>(hit.line.text.size()));
  hit.before = lines_around(json, "before", hit.line.log);
  hit.after = lines_around(json, "after", hit.line.log);
  for (const Json& match : json_part(json, "matches")) {
    if (!match.is_array() || match.size() != 2) continue;
    if (!match[0].is_number_unsigned() || !match[1].is_number_unsigned()) continue;
    hit.matches.emplace_back(byte_of_utf16(hit.line.text, match[0].get<size_t>()),
                             byte_of_utf16(hit.line.text, match[1].get<size_t>()));
  }
  return hit;
}

}  // namespace

Result<ShownPage> parse_page(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{0, "a page of a log that is no JSON"};
  ShownPage page;
  page.log = log_of(json);
  page.exists = json_get(json, "exists", false);
  page.end = json_get(json, "end", int64_t{0});
  page.size = json_get(json, "size", int64_t{0});
  const Json& hole = json_part(json, "hole");
  if (hole.is_array() && hole.size() == 2 && hole[0].is_number() && hole[1].is_number()) {
    page.hole.emplace(hole[0].get<int64_t>(), hole[1].get<int64_t>());
  }
  const auto lines = json.find("lines");
  if (lines == json.end() || !lines->is_array()) return Error{0, "a page of a log without lines"};
  for (const Json& item : *lines) {
    std::optional<ShownLine> line = line_of(item, page.log);
    if (!line) return Error{0, "a page of a log with something that is no line"};
    page.lines.push_back(std::move(*line));
  }
  return page;
}

Result<SearchAnswer> parse_search_answer(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{0, "an answer to a search that is no JSON"};
  SearchAnswer answer;
  if (const Json& hit = json_part(json, "hit"); hit.is_object()) answer.hit = hit_of(hit);
  if (const Json& done = json_part(json, "done"); done.is_object()) {
    answer.done = true;
    answer.truncated = json_get(done, "truncated", false);
    for (const Json& host : json_part(done, "unreachable")) {
      if (host.is_string()) answer.notes.push_back(host.get<std::string>() + " could not be asked");
    }
    for (const Json& trouble : json_part(done, "troubles")) {
      if (trouble.is_string()) answer.notes.push_back(trouble.get<std::string>());
    }
  }
  if (const Json& error = json_part(json, "error"); error.is_object()) {
    answer.error = json_get(error, "message", std::string("the search failed"));
  }
  return answer;
}

size_t byte_of_utf16(std::string_view text, size_t unit) {
  size_t at = 0;
  for (size_t units = 0; at < text.size() && units < unit;) {
    const auto lead = static_cast<unsigned char>(text[at]);
    units += lead >= 0xF0 ? 2 : 1;
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
      ++at;
  }
  return at;
}

}  // namespace muster
