// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/stream_map.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "supervisor/cli/values.h"

namespace muster {
namespace {

std::optional<int> parse_rank(std::string_view text) {
  std::optional<int64_t> value = parse_int(text);
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

// "3" or "0-7".
std::optional<RankRange> parse_range(std::string_view text) {
  size_t dash = text.find('-');
  std::optional<int> first = parse_rank(text.substr(0, dash));
  std::optional<int> last =
      dash == std::string_view::npos ? first : parse_rank(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return RankRange{*first, *last};
}

std::optional<StreamSet> parse_streams(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  int bits = text[0] - '0';
  return StreamSet{(bits & 1) != 0, (bits & 2) != 0};
}

}  // namespace

StreamSet StreamMap::for_rank(int local_rank) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->ranks.contains(local_rank)) return entry->streams;
  }
  return all_;
}

int StreamMap::highest_named() const {
  int highest = -1;
  for (const Entry& entry : entries_)
    highest = std::max(highest, entry.ranks.last);
  return highest;
}

Result<StreamMap> parse_stream_map(std::string_view text) {
  StreamMap map;
  if (std::optional<StreamSet> all = parse_streams(trim(text))) {
    map.all_ = *all;
    return map;
  }
  for (const std::string& part : split(text, ',')) {
    std::string_view entry = trim(part);
    size_t colon = entry.find(':');
    std::optional<RankRange> ranks = parse_range(entry.substr(0, colon));
    std::optional<StreamSet> streams =
        parse_streams(colon == std::string_view::npos ? "" : entry.substr(colon + 1));
    if (!ranks || !streams) {
      return Error{0,
                   "'" + std::string(entry) +
                       "' is neither 0 (none), 1 (stdout), 2 (stderr) or 3 (both) for all workers, "
                       "nor RANK:0-3 or FIRST-LAST:0-3 in a list such as 0:1,4-7:3"};
    }
    map.entries_.push_back({*ranks, *streams});
  }
  return map;
}

bool RankFilter::passes(int rank) const {
  return ranges_.empty() || std::any_of(ranges_.begin(), ranges_.end(),
                                        [rank](RankRange range) { return range.contains(rank); });
}

int RankFilter::highest_named() const {
  int highest = -1;
  for (RankRange range : ranges_)
    highest = std::max(highest, range.last);
  return highest;
}

Result<RankFilter> parse_rank_filter(std::string_view text) {
  RankFilter filter;
  if (trim(text).empty()) return filter;
  for (const std::string& part : split(text, ',')) {
    std::optional<RankRange> range = parse_range(trim(part));
    if (!range) return Error{0, "'" + part + "' is no rank; expected a list such as 0,3-5"};
    filter.ranges_.push_back(*range);
  }
  return filter;
}

}  // namespace muster
