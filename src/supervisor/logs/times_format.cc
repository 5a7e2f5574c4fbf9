// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/times_format.h"

#include <algorithm>
#include <array>

namespace muster {

namespace {

constexpr std::string_view kMagic = "MSTRTM1\n";
constexpr size_t kFields = 7;
// Far above any real offset or time, far below what sums of a few could overflow.
constexpr int64_t kMost = int64_t{1} << 60;

void put_fixed(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(value >> (8 * i));
}

uint64_t get_fixed(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Takes a varint off the front; false if there is no whole one below kMost.
bool get_varint(std::string_view& bytes, int64_t& value) {
  uint64_t sum = 0;
  for (int shift = 0; shift < 63 && !bytes.empty(); shift += 7) {
    uint64_t byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    sum |= (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    value = static_cast<int64_t>(sum);
    return sum < static_cast<uint64_t>(kMost);
  }
  return false;
}

uint64_t checksum(std::string_view bytes) {  // FNV-1a
  uint64_t sum = 0xcbf29ce484222325;
  for (unsigned char byte : bytes)
    sum = (sum ^ byte) * 0x100000001b3;
  return sum;
}

bool makes_sense(const LogCut& cut) {
  if (cut.head_end == 0) {
    return cut.left_out == 0 && cut.to == 0 && cut.from == 0;
  }
  return (cut.to == 0 && cut.from == 0) || (cut.to > cut.head_end && cut.from >= cut.to);
}

}  // namespace

std::string times_path(std::string_view log_path) {
  constexpr std::string_view kLog = ".log";
  if (log_path.size() >= kLog.size() && log_path.substr(log_path.size() - kLog.size()) == kLog) {
    log_path.remove_suffix(kLog.size());
  }
  return std::string(log_path) + ".times";
}

std::string encode_cut(const LogCut& cut) {
  std::string out(kMagic);
  for (int64_t field : {cut.started_us, cut.head_end, cut.left_out, cut.to, cut.from,
                        cut.counted_to, cut.counted_lines})
    put_fixed(out, static_cast<uint64_t>(field));
  put_fixed(out, checksum(out));
  out.resize(kTimesHead, '\0');
  return out;
}

std::optional<LogCut> decode_cut(std::string_view bytes) {
  constexpr size_t kSummed = 8 + 8 * kFields;
  if (bytes.size() != kTimesHead || bytes.substr(0, 8) != kMagic) return std::nullopt;
  if (get_fixed(bytes.substr(kSummed)) != checksum(bytes.substr(0, kSummed))) return std::nullopt;
  std::array<int64_t, kFields> fields;
  for (size_t i = 0; i < kFields; ++i) {
    uint64_t value = get_fixed(bytes.substr(8 + 8 * i));
    if (value >= static_cast<uint64_t>(kMost)) return std::nullopt;
    fields[i] = static_cast<int64_t>(value);
  }
  LogCut cut{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]};
  if (!makes_sense(cut)) return std::nullopt;
  return cut;
}

std::vector<TimeEntry> decode_times(std::string_view block) {
  std::vector<TimeEntry> entries;
  if (block.size() < kTimesFirst) return entries;
  uint64_t offset = get_fixed(block);
  uint64_t time = get_fixed(block.substr(8));
  constexpr uint64_t kBound = kMost;
  if (offset >= kBound || time >= kBound) return entries;
  TimeEntry entry{static_cast<int64_t>(offset), static_cast<int64_t>(time)};
  entries.push_back(entry);
  block.remove_prefix(kTimesFirst);
  int64_t bytes = 0, later = 0;
  while (get_varint(block, bytes) && bytes > 0 && get_varint(block, later)) {
    entry.offset += bytes;
    entry.time_us += later;
    if (entry.offset >= kMost || entry.time_us >= kMost) break;
    entries.push_back(entry);
  }
  return entries;
}

TimesEncoder::Bytes TimesEncoder::add(TimeEntry entry) {
  Bytes out;
  if (any_) {
    // A clock that was set back: time stands still until it has caught up.
    entry.time_us = std::max(entry.time_us, last_.time_us);
    int64_t interval = std::max(kLeastInterval, (last_.time_us - started_us_) / kEntriesInAge);
    if (entry.offset <= last_.offset || entry.time_us - last_.time_us < interval) return out;
    put_varint(out.bytes, static_cast<uint64_t>(entry.offset - last_.offset));
    put_varint(out.bytes, static_cast<uint64_t>(entry.time_us - last_.time_us));
  } else {
    started_us_ = entry.time_us;
  }
  int64_t left = kTimesBlock - place_ % kTimesBlock;
  if (!any_ || static_cast<int64_t>(out.bytes.size()) > left || left == kTimesBlock) {
    if (any_ && left != kTimesBlock) place_ += left;  // the rest of the block stays zero
    out.bytes.clear();
    put_fixed(out.bytes, static_cast<uint64_t>(entry.offset));
    put_fixed(out.bytes, static_cast<uint64_t>(entry.time_us));
  }
  out.place = place_;
  place_ += static_cast<int64_t>(out.bytes.size());
  any_ = true;
  last_ = entry;
  return out;
}

}  // namespace muster
