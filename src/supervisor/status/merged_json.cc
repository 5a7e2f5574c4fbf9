// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/merged_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "supervisor/status/json_out.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/numbers.h"

namespace muster {

namespace {

using Way = MergedQuery::Way;
using nlohmann::json;

Stream stream_of(int number) {
  return number == 0 ? Stream::kStdout : Stream::kStderr;
}

bool take_number(std::string_view& text, int64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

Result<void> read_limit(const HttpServerRequest& request, const char* name, int64_t most,
                        int64_t& limit) {
  auto text = request.parameter(name);
  if (!text) return {};
  auto number = whole_number(*text);
  if (!number) return Error{400, std::string(name) + "= is a whole number"};
  limit = std::clamp<int64_t>(*number, 1, most);
  return {};
}

// A row as write_merged() makes it; nothing if it is none.
std::optional<MergedLine> read_row(const json& row) {
  if (!row.is_array() || row.size() < 8) return std::nullopt;
  for (size_t i : {0, 2, 3, 4, 5}) {
    if (!row[i].is_number_integer()) return std::nullopt;
  }
  if (!row[1].is_string() || !row[6].is_boolean() || !row[7].is_string()) return std::nullopt;
  auto stream = stream_named(row[1].get_ref<const std::string&>());
  if (!stream) return std::nullopt;
  MergedLine line;
  line.rank = row[0].get<int>();
  line.stream = *stream == Stream::kStdout ? 0 : 1;
  line.line.offset = row[2].get<int64_t>();
  line.line.number = row[3].get<int64_t>();
  line.line.time_us = row[4].get<int64_t>();
  line.line.size = row[5].get<int64_t>();
  line.line.ended = row[6].get<bool>();
  line.line.text = row[7].get<std::string>();
  if (row.size() > 8 && row[8].is_number_integer()) line.line.skipped = row[8].get<int64_t>();
  return line;
}

void write_row(JsonOut& out, const MergedLine& merged) {
  const LogLine& line = merged.line;
  out.begin_list();
  out.value(merged.rank);
  out.value(stream_name(stream_of(merged.stream)));
  out.value(line.offset);
  out.value(line.number);
  out.value(line.time_us);
  out.value(line.size);
  out.value(line.ended);
  out.value(line.text);
  if (line.skipped > 0) out.value(line.skipped);
  out.end_array();
}

}  // namespace

std::string merged_cursor(Way way, const MergedPlace& place) {
  std::string text = way == Way::kAfter ? "after:" : "before:";
  return text + std::to_string(place.time_us) + "." + std::to_string(place.rank) + "." +
         std::to_string(place.stream) + "." + std::to_string(place.offset);
}

bool read_merged_cursor(std::string_view text, MergedQuery& query) {
  size_t colon = text.find(':');
  std::string_view way = text.substr(0, colon);
  if (colon == std::string_view::npos || (way != "after" && way != "before")) return false;
  query.way = way == "after" ? Way::kAfter : Way::kBefore;
  text.remove_prefix(colon + 1);
  std::array<int64_t, 4> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (!text.starts_with('.') || (text.remove_prefix(1), false))) return false;
    if (!take_number(text, numbers[i])) return false;
  }
  bool rank_fits = std::in_range<int>(numbers[1]) && std::in_range<int>(numbers[2]);
  if (!text.empty() || !rank_fits) return false;
  query.place = {numbers[0], static_cast<int>(numbers[1]), static_cast<int>(numbers[2]),
                 numbers[3]};
  return true;
}

Result<MergedQuery> merged_query(const HttpServerRequest& request) {
  MergedQuery query;
  int asked = 0;
  for (const char* name : {"cursor", "time", "before", "tail"}) {
    auto text = request.parameter(name);
    if (!text) continue;
    if (++asked > 1) return Error{400, "cursor=, time=, before= and tail= exclude each other"};
    if (std::string_view(name) == "cursor") {
      if (read_merged_cursor(*text, query)) continue;
      return Error{400,
                   "cursor= is the prev or next of an answer, or after: or before: with "
                   "TIME.RANK.STREAM.OFFSET of a line"};
    }
    auto number = whole_number(*text);
    if (!number) return Error{400, std::string(name) + "= is a whole number"};
    if (std::string_view(name) != "time") query.way = Way::kBefore;
    query.place.time_us = *number;
    if (std::string_view(name) != "tail") continue;
    query.place.time_us = INT64_MAX;
    query.max_lines = std::clamp<int64_t>(*number, 1, kMaxMergedLines);
  }
  const int64_t most_bytes = query.max_bytes;
  for (auto [name, most, limit] : {std::tuple("lines", kMaxMergedLines, &query.max_lines),
                                   std::tuple("max_line", most_bytes, &query.max_line),
                                   std::tuple("max_bytes", most_bytes, &query.max_bytes)}) {
    if (auto read = read_limit(request, name, most, *limit); !read) return read.error();
  }
  return query;
}

MergedPage join_merged(const MergedQuery& query, std::vector<MergedPage> parts) {
  const bool on = query.way == Way::kAfter;
  auto nearer = [on](const MergedLine& a, const MergedLine& b) {
    return on ? a.place() < b.place() : a.place() > b.place();
  };
  MergedPage page;
  // Beyond the last line of a part that has more, lines of it may be missing.
  std::optional<MergedPlace> bound;
  for (MergedPage& part : parts) {
    if (!on) std::reverse(part.lines.begin(), part.lines.end());
    if (part.more && !part.lines.empty()) {
      MergedPlace last = part.lines.back().place();
      if (!bound || (on ? last < *bound : last > *bound)) bound = last;
    }
    page.more = page.more || part.more;
    std::move(part.lines.begin(), part.lines.end(), std::back_inserter(page.lines));
    page.untimed.insert(page.untimed.end(), part.untimed.begin(), part.untimed.end());
  }
  std::sort(page.lines.begin(), page.lines.end(), nearer);
  size_t kept = std::min(page.lines.size(), static_cast<size_t>(query.max_lines));
  while (kept > 0 && bound &&
         (on ? page.lines[kept - 1].place() > *bound : page.lines[kept - 1].place() < *bound))
    --kept;
  page.more = page.more || kept < page.lines.size();
  page.lines.resize(kept);
  if (!on) std::reverse(page.lines.begin(), page.lines.end());
  std::sort(page.untimed.begin(), page.untimed.end());
  return page;
}

std::string write_merged(const MergedQuery& query, const MergedAnswer& answer) {
  const std::vector<MergedLine>& lines = answer.page.lines;
  const bool on = query.way == Way::kAfter;
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.key("lines");
  out.begin_array();
  for (const MergedLine& line : lines)
    write_row(out, line);
  out.end_array();
  out.field("begin_us", lines.empty() ? 0 : lines.front().line.time_us);
  out.field("end_us", lines.empty() ? 0 : lines.back().line.time_us);
  MergedPlace first = lines.empty() ? query.place : lines.front().place();
  MergedPlace last = lines.empty() ? query.place : lines.back().place();
  out.field("prev", merged_cursor(Way::kBefore, first));
  out.field("next", merged_cursor(Way::kAfter, last));
  out.field("more", answer.page.more);
  out.field("at_begin", on ? query.place < MergedPlace{0, 0, 0, 0} : !answer.page.more);
  out.field("at_end", on ? !answer.page.more : query.place.time_us == INT64_MAX);
  out.key("untimed");
  out.begin_list();
  for (int rank : answer.page.untimed)
    out.value(rank);
  out.end_array();
  out.key("unreachable");
  out.begin_list();
  for (const std::string& host : answer.unreachable)
    out.value(host);
  out.end_array();
  out.end_object();
  text += '\n';
  return text;
}

std::optional<MergedPage> read_merged_answer(std::string_view text, const MergedQuery& query) {
  json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("lines") || !answer["lines"].is_array()) {
    return std::nullopt;
  }
  MergedPage page;
  page.more = answer.value("more", json(false)) == true;
  for (const json& row : answer["lines"]) {
    std::optional<MergedLine> line = read_row(row);
    if (!line) return std::nullopt;
    bool beyond =
        query.way == Way::kAfter ? line->place() > query.place : line->place() < query.place;
    if (!beyond) return std::nullopt;
    page.lines.push_back(std::move(*line));
  }
  const json untimed = answer.value("untimed", json::array());
  if (!untimed.is_array()) return std::nullopt;
  for (const json& rank : untimed) {
    if (rank.is_number_integer()) page.untimed.push_back(rank.get<int>());
  }
  return page;
}

}  // namespace muster
