// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/texts.h"

#include <muster/comm/communicator.h>

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

// " to rank 3", " from rank 0", ...
std::string partner_text(const Operation& operation, std::span<const int> world_ranks) {
  if (!operation.point_to_point() && !has_root(operation.kind)) return "";
  const auto index = static_cast<size_t>(operation.root_or_peer);
  const int rank = index < world_ranks.size() ? world_ranks[index] : operation.root_or_peer;
  const bool towards = operation.kind == OpKind::kSend || operation.kind == OpKind::kReduce ||
                       operation.kind == OpKind::kGather;
  return std::string(towards ? " to rank " : " from rank ") + std::to_string(rank);
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
                     partner_text(operation, world_ranks);
  if (operation.kind == OpKind::kBarrier) return text;
  const ConstBuffer size = size_buffer(operation);
  text += " (" + bytes_text(size.bytes()) + " " + to_string(size.type);
  if (operation.tag != 0) text += ", tag " + std::to_string(operation.tag);
  return text + ")";
}

std::string call_text(const Operation& operation, std::span<const int> world_ranks) {
  std::string text = to_string(operation.kind) + partner_text(operation, world_ranks);
  if (operation.kind == OpKind::kBarrier) return text;
  const ConstBuffer size = size_buffer(operation);
  text += " of " + std::to_string(size.count) + " " + to_string(size.type);
  if (reduces(operation.kind)) text += std::string(", ") + to_string(operation.reduce);
  if (operation.tag != 0) text += ", tag " + std::to_string(operation.tag);
  return text;
}

}  // namespace muster::comm::detail
