// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/collective_text.h"

#include <algorithm>
#include <cstdio>

#include "supervisor/cli/ranges.h"

namespace muster {

namespace {

using comm::detail::OpKind;
using worker_page::name_of;

constexpr size_t kMaxRanges = 60;  // characters

bool has_root(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReduce || kind == OpKind::kScatter ||
         kind == OpKind::kGather;
}

bool reduces(OpKind kind) {
  return kind == OpKind::kReduce || kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
}

// Three digits are enough, and no ".0".
std::string number_words(double value, const char* unit) {
  char text[40];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.1f" : "%.0f", value);
  std::string number = text;
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + unit;
}

std::string size_and_type(const RankCall& call, const char* between) {
  if (bytes_of(call) < 0) return "";
  return size_words(bytes_of(call)) + between + name_of(call.type);
}

}  // namespace

std::string ranks_words(const std::vector<int>& ranks) {
  std::string text = format_ranges(ranks, ", ");
  if (text.size() > kMaxRanges) {
    text.resize(text.rfind(',', kMaxRanges));
    text += ", ... (" + std::to_string(ranks.size()) + " in all)";
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string wait_words(int64_t microseconds) {
  const int64_t seconds = microseconds / 1'000'000;
  if (microseconds < 1'000'000) return std::to_string(microseconds / 1000) + " ms";
  if (seconds < 10) return number_words(static_cast<double>(microseconds) / 1e6, "s");
  if (seconds < 600) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h";
}

std::string size_words(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1000;
  return number_words(value, kUnits[unit]);
}

int64_t bytes_of(const RankCall& call) {
  if (call.kind == OpKind::kBarrier) return -1;
  const auto each = static_cast<int64_t>(comm::size_of(call.type));
  return std::min(static_cast<int64_t>(call.count), INT64_MAX / each) * each;
}

std::string call_words(const RankCall& call, const RankCommunicator& communicator) {
  std::string text = name_of(call.kind);
  text += " #" + std::to_string(call.sequence);
  const std::string& name = communicator.name;
  return name.empty() || name == "world" ? text : text + " of \"" + name + "\"";
}

std::string sized_call_words(const RankCall& call, const RankCommunicator& communicator) {
  const std::string size = size_and_type(call, ", ");
  return call_words(call, communicator) + (size.empty() ? "" : " (" + size + ")");
}

std::string full_call_words(const RankCall& call, const Group& group) {
  std::string details;
  if (has_root(call.kind)) {
    const int root = group.world_rank(call.root_or_peer);
    details = "root " + (root >= 0 ? std::to_string(root) : "?");
  }
  if (reduces(call.kind)) {
    details += (details.empty() ? "" : ", ") + std::string(name_of(call.reduce));
  }
  const std::string size = size_and_type(call, " ");
  if (!size.empty()) details += (details.empty() ? "" : ", ") + size;
  return call_words(call, *group.any) + (details.empty() ? "" : " (" + details + ")");
}

namespace {

LatestCall oldest_open(const RankOperations& operations) {
  LatestCall oldest;
  for (const RankCommunicator& communicator : operations.communicators) {
    for (const RankCall& call : communicator.calls) {
      if (call.done() || call.failed()) continue;
      if (oldest.call == nullptr || call.age_us > oldest.call->age_us) {
        oldest = {&call, &communicator};
      }
    }
  }
  return oldest;
}

Whereabouts in_a_call(const KnownWorld& world, const KnownRank& known, const LatestCall& inside) {
  const RankCall& call = *inside.call;
  const std::string wait = " since " + wait_words(call.age_us + known.elapsed_us);
  if (!call.message()) {
    return {"is in " + call_words(call, *inside.communicator) + wait, false, false};
  }
  const int rank = world.group_of(*inside.communicator).world_rank(call.root_or_peer);
  const std::string peer = rank >= 0 ? "rank " + std::to_string(rank) : "another rank";
  const bool sends = call.kind == OpKind::kSend;
  return {(sends ? "waits to send a message to " : "waits for a message from ") + peer + wait,
          false, false};
}

}  // namespace

Whereabouts whereabouts(const KnownWorld& world, int rank) {
  const KnownRank* known = world.find(rank);
  if (known == nullptr) return {"is not known here", true, false};
  if (known->end == RankEnd::kDied) return {"has died", true, true};
  if (known->end == RankEnd::kFinished) return {"has ended", true, true};
  if (!known->operations) return {"tells nothing of its operations", true, false};
  const LatestCall inside = oldest_open(*known->operations);
  if (inside.call != nullptr) return in_a_call(world, *known, inside);
  const LatestCall last = last_ended(*known->operations);
  if (last.call == nullptr) return {"has entered no operation yet", true, false};
  const int64_t ago_us = last.call->age_us - last.call->took_us + known->elapsed_us;
  const char* how = last.call->failed() ? " failed " : " ended ";
  return {"is in no operation; its last, " + call_words(*last.call, *last.communicator) + "," +
              how + wait_words(ago_us) + " ago",
          true, false};
}

LatestCall latest_call(const RankOperations& operations) {
  const LatestCall open = oldest_open(operations);
  return open.call != nullptr ? open : last_ended(operations);
}

void fill_operation(event::CollectiveFinding& finding, const RankCall& call,
                    const RankCommunicator& communicator) {
  finding.communicator = communicator.name;
  finding.operation = name_of(call.kind);
  finding.sequence = static_cast<int64_t>(call.sequence);
  finding.bytes = bytes_of(call);
  if (finding.bytes >= 0) finding.data_type = name_of(call.type);
}

}  // namespace muster
