// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/texts.h"

#include <muster/comm/communicator.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster::comm::detail {
namespace {

// One digit after the point where it says something: "4.2", "10", "312".
std::string short_number(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), value < 9.95 ? "%.1f" : "%.0f", value);
  std::string result(text.data(), static_cast<size_t>(size));
  if (result.ends_with(".0")) result.resize(result.size() - 2);
  return result;
}

bool has_root(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReduce || kind == OpKind::kScatter ||
         kind == OpKind::kGather;
}

bool reduces(OpKind kind) {
  return kind == OpKind::kReduce || kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
}

int world_rank(const Operation& operation, std::span<const int> world_ranks) {
  const auto index = static_cast<size_t>(operation.root_or_peer);
  return index < world_ranks.size() ? world_ranks[index] : operation.root_or_peer;
}

// " to rank 3", " from rank 0" of messages.
std::string peer_text(const Operation& operation, std::span<const int> world_ranks) {
  if (!operation.point_to_point()) return "";
  return (operation.kind == OpKind::kSend ? " to rank " : " from rank ") +
         std::to_string(world_rank(operation, world_ranks));
}

// ", root 0" and ", tag 7".
std::string details_text(const Operation& operation, std::span<const int> world_ranks) {
  std::string text;
  if (has_root(operation.kind))
    text += ", root " + std::to_string(world_rank(operation, world_ranks));
  if (operation.tag != 0) text += ", tag " + std::to_string(operation.tag);
  return text;
}

std::string counts_text(const std::vector<size_t>& counts) {
  constexpr size_t kListed = 16;
  std::string text;
  for (size_t i = 0; i < std::min(counts.size(), kListed); ++i)
    text += (i == 0 ? "" : "+") + std::to_string(counts[i]);
  return counts.size() <= kListed ? text : text + "+...";
}

// What all members must say alike: where ranks have more or less than others, one rank's part.
std::string agreed_count(const Operation& operation) {
  const bool part_of_out = operation.kind == OpKind::kScatter ||
                           operation.kind == OpKind::kBroadcast ||
                           operation.kind == OpKind::kReduceScatter;
  if (!operation.counts.empty() && operation.kind != OpKind::kAllToAll)
    return counts_text(operation.counts);
  if (!operation.counts.empty()) return "various";
  return std::to_string(part_of_out ? operation.out.count : size_buffer(operation).count);
}

}  // namespace

std::string bytes_text(size_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {" kB", " MB", " GB", " TB", " PB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit)
    value /= 1000;
  return short_number(value) + kUnits[unit];
}

std::string time_text(std::chrono::milliseconds time) {
  if (time.count() < 1000) return std::to_string(time.count()) + " ms";
  if (time < std::chrono::minutes(2)) return short_number(double(time.count()) / 1000) + " s";
  return short_number(double(time.count()) / 60'000) + " min";
}

ConstBuffer size_buffer(const Operation& operation) {
  if (operation.kind == OpKind::kSend || operation.in.count > 0) return operation.in;
  return operation.out;
}

std::string operation_text(const Operation& operation, uint64_t sequence,
                           std::span<const int> world_ranks) {
  std::string text = std::string(to_string(operation.kind)) + " #" + std::to_string(sequence) +
                     peer_text(operation, world_ranks);
  if (operation.kind == OpKind::kBarrier) return text;
  const ConstBuffer size = size_buffer(operation);
  text += " (" + bytes_text(size.bytes()) + " " + to_string(size.type);
  return text + details_text(operation, world_ranks) + ")";
}

std::string call_text(const Operation& operation, std::span<const int> world_ranks) {
  std::string text = to_string(operation.kind) + peer_text(operation, world_ranks);
  if (operation.kind == OpKind::kBarrier) return text;
  text += " of " + agreed_count(operation) + " " + to_string(size_buffer(operation).type);
  if (reduces(operation.kind)) text += std::string(", ") + to_string(operation.reduce);
  return text + details_text(operation, world_ranks);
}

}  // namespace muster::comm::detail
