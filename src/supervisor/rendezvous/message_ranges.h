// SPDX-License-Identifier: Apache-2.0
// Only for messages.cc: what of a message is out of range.
#pragma once

#include "supervisor/rendezvous/forwarded_words.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

inline constexpr int kMaxWorkersPerNode = 65536;
inline constexpr int kMaxRank = 1 << 30;
inline constexpr int64_t kMaxTimeUs = int64_t{1} << 60;  // sums of a few stay in range
inline constexpr size_t kMaxSecret = 256;                // a nonce, a proof
inline constexpr int kMaxHeartbeatMs = 3'600'000;
inline constexpr int kMaxHeartbeatMisses = 10'000;
inline constexpr int64_t kMaxDelayMs = int64_t{366} * 24 * 3'600'000;
inline constexpr int kMinSampleMs = 100;
inline constexpr int kMaxSampleMs = 3'600'000;
inline constexpr int64_t kMaxCredit = int64_t{1} << 40;

inline bool within(int64_t value, int64_t low, int64_t high) {
  return low <= value && value <= high;
}

// Each names the first that is out of range, nullptr if nothing is.
template <typename T>
inline const char* find_wrong(const T&) {
  return nullptr;
}
inline const char* find_wrong(const message::Hello& m) {
  if (m.run_id.empty() || m.run_id.size() > kMaxRunId) return "run_id";
  return m.nonce.size() > kMaxSecret ? "nonce" : nullptr;
}
inline const char* find_wrong(const message::Challenge& m) {
  if (!within(m.time_us, 0, kMaxTimeUs)) return "time_us";
  return m.nonce.size() > kMaxSecret || m.proof.size() > kMaxSecret ? "nonce or proof" : nullptr;
}
inline const char* find_wrong(const message::Join& m) {
  const NodeFacts& facts = m.facts;
  if (facts.id.empty()) return "id";
  if (!within(facts.workers, 1, kMaxWorkersPerNode)) return "workers";
  if (facts.node_rank && !within(*facts.node_rank, 0, kMaxRank)) return "node_rank";
  if (!within(facts.spare_port, 0, 65535)) return "spare_port";
  if (!within(facts.attempt, -1, kMaxRank)) return "attempt";
  if (!within(facts.last_attempt, -1, kMaxRank)) return "last_attempt";
  if (!within(facts.last_restart_count, 0, kMaxRank)) return "last_restart_count";
  if (!within(m.clock_offset_us, -kMaxTimeUs, kMaxTimeUs)) return "clock_offset_us";
  return m.proof.size() > kMaxSecret ? "proof" : nullptr;
}
inline const char* find_wrong(const message::Welcome& m) {
  if (!within(m.heartbeat_ms, 1, kMaxHeartbeatMs)) return "heartbeat_ms";
  return within(m.heartbeat_misses, 1, kMaxHeartbeatMisses) ? nullptr : "heartbeat_misses";
}
inline const char* find_wrong(const Assignment& a) {
  if (!within(a.attempt, 0, kMaxRank) || !within(a.restart_count, 0, kMaxRank)) return "attempt";
  if (!within(a.node, 0, kMaxRank) || !within(a.node_count, a.node + 1, kMaxRank)) return "node";
  if (!within(a.first_rank, 0, kMaxRank) || !within(a.world_size, a.first_rank + 1, kMaxRank))
    return "first_rank";
  if (!within(a.role_first_rank, 0, kMaxRank) || !within(a.role_world_size, 0, kMaxRank))
    return "role_first_rank";
  return within(a.master_port, 0, 65535) ? nullptr : "master_port";
}
inline const char* find_wrong(const StopOrder& order) {
  return within(order.signal, 1, 64) ? nullptr : "signal";
}
inline const char* find_wrong(const event::FailureFound& failure) {
  if (!within(failure.rank, -1, kMaxRank)) return "rank";
  return within(failure.time_us, -kMaxTimeUs, kMaxTimeUs) ? nullptr : "time_us";
}
inline const char* find_wrong(const FailureNotice& notice) {
  return find_wrong(notice.preliminary);
}
template <typename T>
const char* find_wrong_causes(const T& told) {
  const char* wrong = told.root ? find_wrong(*told.root) : nullptr;
  for (const event::FailureFound& other : told.others)
    wrong = wrong ? wrong : find_wrong(other);
  return wrong;
}
inline const char* find_wrong(const NodeOutcome& outcome) {
  const char* wrong = find_wrong_causes(outcome);
  for (const event::FailureFound& suspect : outcome.suspects)
    wrong = wrong ? wrong : find_wrong(suspect);
  return wrong;
}
inline const char* find_wrong(const AttemptVerdict& verdict) {
  if (!within(verdict.restart_count, 0, kMaxRank)) return "restart_count";
  if (!within(verdict.delay_ms, 0, kMaxDelayMs)) return "delay_ms";
  if (!within(verdict.excluded, -1, kMaxRank)) return "excluded";
  if (verdict.early && !verdict.root) return "root";
  return find_wrong_causes(verdict);
}
inline const char* find_wrong(const message::StopRequest& request) {
  return within(request.signal.signal, 1, 64) ? nullptr : "signal";
}
inline const char* find_wrong(const JobEnd& end) {
  return within(end.exit_code, 0, 255) ? nullptr : "exit_code";
}
inline const char* find_wrong(const message::Answer& answer) {
  if (answer.id < 1) return "id";
  if (!within(answer.status, 200, 599)) return "status";
  if (answer.length < -1) return "length";
  return are_headers(answer.headers) ? nullptr : "headers";
}
inline const char* find_wrong(const message::Request& request) {
  if (request.id < 1) return "id";
  if (!is_target(request.target)) return "target";
  if (!within(request.credit, 0, kMaxCredit)) return "credit";
  return are_headers(request.headers) ? nullptr : "headers";
}
inline const char* find_wrong(const message::Piece& piece) {
  if (piece.id < 1) return "id";
  return piece.bytes.empty() || piece.bytes.size() > kMaxPiece ? "size" : nullptr;
}
inline const char* find_wrong(const message::AnswerEnd& end) {
  return end.id < 1 ? "id" : nullptr;
}
inline const char* find_wrong(const message::AnswerBroken& broken) {
  return broken.id < 1 ? "id" : nullptr;
}
inline const char* find_wrong(const message::Cancel& cancel) {
  return cancel.id < 1 ? "id" : nullptr;
}
inline const char* find_wrong(const message::Credit& credit) {
  if (credit.id < 1) return "id";
  return within(credit.bytes, 1, kMaxCredit) ? nullptr : "bytes";
}
inline const char* find_wrong(const message::Watch& watch) {
  if (!within(watch.every_ms, kMinSampleMs, kMaxSampleMs)) return "every_ms";
  return within(watch.for_ms, 0, kMaxSampleMs) ? nullptr : "for_ms";
}

}  // namespace muster
