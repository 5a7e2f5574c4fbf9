// SPDX-License-Identifier: Apache-2.0
// Only for sources that turn events into JSON or back (event_json.cc, rendezvous/messages.cc).
#pragma once

#include <array>
#include <string_view>

#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/event.h"

namespace muster {

// The fields of every event, named once: describe(visitor, event) calls visitor("key", field) for
// each. Readers, writers and cleaners are visitors (job/json_fields.h).

template <typename E>
struct EnumName {
  E value;
  std::string_view text;
};

inline constexpr std::array kStreamNames = {EnumName<Stream>{Stream::kStdout, "stdout"},
                                            EnumName<Stream>{Stream::kStderr, "stderr"}};
inline constexpr std::array kOutcomeNames = {EnumName<Outcome>{Outcome::kSucceeded, "succeeded"},
                                             EnumName<Outcome>{Outcome::kFailed, "failed"},
                                             EnumName<Outcome>{Outcome::kStopped, "stopped"}};
inline constexpr std::array kStopReasonNames = {
    EnumName<StopReason>{StopReason::kNone, "none"},
    EnumName<StopReason>{StopReason::kFailure, "failure"},
    EnumName<StopReason>{StopReason::kRestart, "restart"},
    EnumName<StopReason>{StopReason::kSignal, "signal"},
    EnumName<StopReason>{StopReason::kFinished, "finished"},
    EnumName<StopReason>{StopReason::kGuardLost, "guard_lost"},
    EnumName<StopReason>{StopReason::kMembership, "membership"},
    EnumName<StopReason>{StopReason::kCoordinatorLost, "coordinator_lost"}};

constexpr const auto& names_of(Stream) {
  return kStreamNames;
}
constexpr const auto& names_of(Outcome) {
  return kOutcomeNames;
}
constexpr const auto& names_of(StopReason) {
  return kStopReasonNames;
}

template <typename E>
std::string_view name_of(E value) {
  for (const auto& name : names_of(value)) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

template <typename A>
void describe(A&& a, event::JobStarted& e) {
  a("run_id", e.run_id);
  a("host", e.host);
  a("program", e.program);
  a("command", e.command);
  a("log_dir", e.log_dir);
  a("world_size", e.world_size);
  a("local_world_size", e.local_world_size);
  a("min_nodes", e.min_nodes);
  a("max_nodes", e.max_nodes);
  a("max_restarts", e.max_restarts);
  a("pid", e.pid);
  a("started_by", e.started_by);
}

template <typename A>
void describe(A&& a, event::NodeSpan& e) {
  a("node", e.node);
  a("host", e.host);
  a("first_rank", e.first_rank);
  a("workers", e.workers);
  a("id", e.id);
}

template <typename A>
void describe(A&& a, event::AttemptStarted& e) {
  a("attempt", e.attempt);
  a("restart_count", e.restart_count);
  a("node", e.node);
  a("node_count", e.node_count);
  a("world_size", e.world_size);
  a("nodes", e.nodes);
  a("master_addr", e.master_addr);
  a("master_port", e.master_port);
}

template <typename A>
void describe(A&& a, event::WorkerSpawned& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("pid", e.pid);
}

template <typename A>
void describe(A&& a, event::SpawnFailed& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("errno", e.code);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::FirstOutput& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("stream", e.stream);
}

template <typename A>
void describe(A&& a, event::WorkerExited& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("pid", e.pid);
  a("wait_status", e.wait_status);
  a("max_rss_kib", e.max_rss_kib);
  // For readers without wait(2)'s macros.
  WaitStatus status = decode_wait_status(e.wait_status);
  a.derived("exit_code", status.exit_code);
  a.derived("signal", status.signal);
}

template <typename A>
void describe(A&& a, event::SignalSent& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("pid", e.pid);
  a("signal", e.signal);
  a("to_group", e.to_group);
  a("reason", e.reason);
}

template <typename A>
void describe(A&& a, event::SignalReceived& e) {
  a("signal", e.signal);
  a("sender_pid", e.sender_pid);
  a("sender_uid", e.sender_uid);
  a("sender", e.sender);
  a("forwarded", e.forwarded);
  a("host", e.host);
}

template <typename A>
void describe(A&& a, event::StopOrdered& e) {
  a("attempt", e.attempt);
  a("signal", e.signal);
  a("reason", e.reason);
  a("why", e.why);
}

template <typename A>
void describe(A&& a, event::RestartRequested& e) {
  a("attempt", e.attempt);
  a("who", e.who);
  a("host", e.host);
}

template <typename A>
void describe(A&& a, event::FailureFound& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("host", e.host);
  a("node", e.node);
  a("pid", e.pid);
  a("kind", e.kind);
  a("signal", e.signal);
  a("exit_code", e.exit_code);
  a("message", e.message);
  a("excerpt", e.excerpt);
  a("excerpt_source", e.excerpt_source);
  a("line", e.line);
  a("line_source", e.line_source);
  a("evidence", e.evidence);
  a("note", e.note);
  a("victim", e.victim);
  a("blames", e.blames);
  a("comm_error", e.comm_error);
  a("can_heal", e.can_heal);
  a("ran_us", e.ran_us);
  a("time_us", e.time_us);
  a("stdout_log", e.stdout_log);
  a("stderr_log", e.stderr_log);
}

template <typename A>
void describe(A&& a, event::VictimGroup& e) {
  a("ranks", e.ranks);
  a("reason", e.reason);
}

template <typename A>
void describe(A&& a, event::VictimsFound& e) {
  a("attempt", e.attempt);
  a("groups", e.groups);
}

template <typename A>
void describe(A&& a, event::CollectiveFinding& e) {
  a("kind", e.kind);
  a("communicator", e.communicator);
  a("operation", e.operation);
  a("sequence", e.sequence);
  a("bytes", e.bytes);
  a("data_type", e.data_type);
  a("suspects", e.suspects);
  a("waiting", e.waiting);
  a("waited_us", e.waited_us);
  a("text", e.text);
}

template <typename A>
void describe(A&& a, event::CollectivesFound& e) {
  a("attempt", e.attempt);
  a("found", e.found);
  a("left_out", e.left_out);
}

template <typename A>
void describe(A&& a, event::StallFound& e) {
  a("attempt", e.attempt);
  a("kind", e.kind);
  a("suspects", e.suspects);
  a("waiting", e.waiting);
  a("since_us", e.since_us);
  a("text", e.text);
}

template <typename A>
void describe(A&& a, event::StallOver& e) {
  a("attempt", e.attempt);
  a("lasted_us", e.lasted_us);
  a("how", e.how);
}

template <typename A>
void describe(A&& a, event::EvidenceSaved& e) {
  a("attempt", e.attempt);
  a("host", e.host);
  a("why", e.why);
  a("folder", e.folder);
  a("groups", e.groups);
  a("trouble", e.trouble);
}

template <typename A>
void describe(A&& a, event::RestartScheduled& e) {
  a("next_attempt", e.next_attempt);
  a("used", e.used);
  a("max", e.max);
  a("charged", e.charged);
  a("delay_ms", e.delay_ms);
}

template <typename A>
void describe(A&& a, event::RestartDenied& e) {
  a("attempt", e.attempt);
  a("reason", e.reason);
}

template <typename A>
void describe(A&& a, event::LeftoverFound& e) {
  a("pid", e.pid);
  a("command", e.command);
  a("state", e.state);
  a("wait_channel", e.wait_channel);
  a("ended", e.ended);
  a("fate", e.fate);
  a("host", e.host);
}

template <typename A>
void describe(A&& a, event::NodeJoined& e) {
  a("id", e.id);
  a("host", e.host);
  a("address", e.address);
  a("pid", e.pid);
  a("workers", e.workers);
  a("spare", e.spare);
  a("log_dir", e.log_dir);
}

template <typename A>
void describe(A&& a, event::NodeLost& e) {
  a("id", e.id);
  a("host", e.host);
  a("node", e.node);
  a("how", e.how);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::NodesAwaited& e) {
  a("have", e.have);
  a("min", e.min);
  a("max", e.max);
  a("hosts", e.hosts);
  a("left_ms", e.left_ms);
  a("text", e.text);
}

template <typename A>
void describe(A&& a, event::Trouble& e) {
  a("subject", e.subject);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::JobEnded& e) {
  a("outcome", e.outcome);
  a("exit_code", e.exit_code);
  a("why", e.why);
  a("kind", e.kind);
}

}  // namespace muster
