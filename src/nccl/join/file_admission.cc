// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/file_admission.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace muster::comm::detail {

namespace {

using Kind = FileStore::Admission::Kind;

constexpr std::string_view kMember = "member/";
constexpr std::string_view kGone = "gone/";

struct Entry {
  std::string rank{};
  int attempt = 0;
  std::string run_id{};
  Identity identity{};
  bool gone = false;
};

std::string encode(const Place& place, const Identity& self) {
  std::string run_id = place.run_id;
  std::ranges::replace(run_id, '\n', ' ');
  return std::to_string(place.attempt) + "\n" + run_id + "\n" + self.encode();
}

std::optional<Entry> decode(std::string_view bytes) {
  Entry entry;
  const size_t first = bytes.find('\n');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = bytes.find('\n', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  if (std::from_chars(bytes.data(), bytes.data() + first, entry.attempt).ec != std::errc())
    return std::nullopt;
  entry.run_id = bytes.substr(first + 1, second - first - 1);
  std::optional<Identity> identity = Identity::decode(bytes.substr(second + 1));
  if (!identity) return std::nullopt;
  entry.identity = std::move(*identity);
  return entry;
}

std::vector<Entry> entries(const Table& table) {
  std::vector<Entry> list;
  for (const auto& [key, value] : table.values()) {
    if (!key.starts_with(kMember)) continue;
    std::optional<Entry> entry = decode(value);
    if (!entry) continue;
    entry->rank = key.substr(kMember.size());
    entry->gone = table.exists(std::string(kGone) + entry->rank);
    list.push_back(std::move(*entry));
  }
  return list;
}

// Known to be dead. Of another boot of what can only be this host nothing lives.
bool dead(const Entry& entry, const Identity& self, bool local_disk) {
  if (entry.identity.boot != self.boot) return local_disk;
  return entry.identity.same_host(self) && !entry.identity.lives();
}

bool earlier_attempt(const Entry& entry, const Place& place) {
  return !place.run_id.empty() && entry.run_id == place.run_id && entry.attempt < place.attempt;
}

muster::Error in_the_way(const Entry& entry, const Identity& self, const std::string& file) {
  const std::string there = file + ": rank " + entry.rank + " is there already: ";
  if (entry.identity.same_host(self))
    return muster::Error{EEXIST, there + entry.identity.to_string() + ", which lives"};
  return muster::Error{EEXIST, there + entry.identity.to_string() +
                                   ", of whom this host cannot know whether it lives; if no job "
                                   "uses the file any more, remove it"};
}

}  // namespace

muster::Result<FileStore::Admission> admission(const Table& table, bool local_disk,
                                               const Place& place, const Identity& self,
                                               const std::string& file) {
  FileStore::Admission admission;
  admission.sets.emplace_back(std::string(kMember) + std::to_string(place.rank),
                              encode(place, self));
  const std::vector<Entry> list = entries(table);
  const bool left_behind = std::ranges::any_of(list, [&](const Entry& entry) {
    return dead(entry, self, local_disk) || earlier_attempt(entry, place);
  });
  if (left_behind) {
    admission.kind = Kind::kBeginAnew;
    return admission;
  }
  const auto mine = std::ranges::find(list, std::to_string(place.rank), &Entry::rank);
  if (mine == list.end()) return admission;
  if (!mine->gone) return in_the_way(*mine, self, file);
  admission.kind = Kind::kComeLater;
  admission.why = "the job before has not ended: rank " + mine->rank + " left it, others have not";
  return admission;
}

std::pair<std::string, std::string> leaving_record(const Place& place) {
  return {std::string(kGone) + std::to_string(place.rank), ""};
}

bool nobody_left(const Table& table, const Place& place, const Identity& self) {
  const std::vector<Entry> list = entries(table);
  return std::ranges::all_of(list, [&](const Entry& entry) {
    return entry.gone || entry.rank == std::to_string(place.rank) || dead(entry, self, false);
  });
}

}  // namespace muster::comm::detail
