// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace muster {

// Everything that happens to a job is one of these. They are appended to events.jsonl, applied to
// the JobState by its reducer, and shown to whoever watches; nothing else changes the state.
// Times are wall-clock for people, plus monotonic microseconds since the start for arithmetic.

enum class Stream { kStdout = 1, kStderr = 2 };
enum class Outcome { kSucceeded, kFailed, kStopped };
enum class StopReason {
  kNone,
  kFailure,
  kRestart,
  kSignal,
  kFinished,
  kGuardLost,
  kMembership,       // a node came, went or was lost
  kCoordinatorLost,  // this node is cut off from whoever decides
};

namespace event {

struct JobStarted {
  std::string run_id;
  std::string host;
  std::string program;
  std::vector<std::string> command;  // muster's own argv
  std::string log_dir;               // the run's folder, empty when logs are off
  int world_size = 0;                // 0 until the nodes have met
  int local_world_size = 0;
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  int pid = 0;             // muster's
  std::string started_by;  // user name or uid
};

// The part of the ranks that one node of an attempt has: contiguous, in the order of the nodes.
struct NodeSpan {
  int node = 0;  // GROUP_RANK
  std::string host;
  int first_rank = 0;
  int workers = 0;
  std::string id{};  // NodeJoined's, "" if nobody joined anything
};

struct AttemptStarted {
  int attempt = 0;  // counts every start, those after a change of membership too; names the folder
  int restart_count = 0;  // restarts charged to the budget so far: TORCHELASTIC_RESTART_COUNT
  int node = 0;           // this node's GROUP_RANK
  int node_count = 1;
  int world_size = 0;
  std::string master_addr;
  int master_port = 0;
  // The nodes whose ranks are shown here: all of them where the coordinator is, else this one.
  std::vector<NodeSpan> nodes;
};

struct WorkerSpawned {
  int attempt = 0;
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
};

// The program could not be started. `code` is the errno of execve or of what went before it.
struct SpawnFailed {
  int attempt = 0;
  int rank = 0;
  int local_rank = 0;
  int code = 0;
  std::string message;
};

struct FirstOutput {
  int attempt = 0;
  int rank = 0;
  Stream stream = Stream::kStdout;
};

// The end of a worker's main process, with the status exactly as wait(2) gave it.
struct WorkerExited {
  int attempt = 0;
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  int wait_status = 0;
  int64_t max_rss_kib = 0;
};

// What muster itself sent, so that those it stopped are never taken for culprits.
struct SignalSent {
  int attempt = 0;
  int rank = 0;
  int pid = 0;
  int signal = 0;
  bool to_group = false;
  StopReason reason = StopReason::kNone;
};

// A signal that muster received.
struct SignalReceived {
  int signal = 0;
  int sender_pid = 0;  // 0: the kernel or the terminal
  int sender_uid = 0;
  std::string sender;      // "user name", command of the sender if it could be read
  bool forwarded = false;  // only passed on to the workers (USR1, USR2): it stops nothing
  std::string host;        // whose muster got it, in jobs of several nodes
};

// The coordinator of several nodes had the workers stopped here.
struct StopOrdered {
  int attempt = 0;
  int signal = 0;
  StopReason reason = StopReason::kNone;
  std::string why;  // "rank 5 on node-b failed", "node-c was lost"
};

// Somebody asked for another attempt instead of the one that runs. Recorded where the coordinator
// is; the others are told by a StopOrdered.
struct RestartRequested {
  int attempt = 0;   // that ends for it
  std::string who;   // "HTTP from 127.0.0.1"
  std::string host;  // whose muster was asked, in jobs of several nodes
};

// Why an attempt failed: what the report shows. `kind` is a stable name (exit_code,
// python_exception, killed, segfault, exec_not_found, node_lost, ...).
struct FailureFound {
  int attempt = 0;
  int rank = 0;  // -1: a whole node
  int local_rank = 0;
  std::string host;  // where it happened
  int node = 0;      // that node's GROUP_RANK
  int pid = 0;
  std::string kind;
  int signal = 0;                    // 0 if it exited
  int exit_code = 0;                 // exit code, or 128+signal
  std::string message;               // one line
  std::vector<std::string> excerpt;  // last lines or end of the traceback
  std::string excerpt_source;        // "stderr", "stdout", "error file"
  // The one line that shows it, as it was written, and where it stands: "stderr", "stdout",
  // "error file", "kernel log", "cgroup". "" if only the wait status tells.
  std::string line;
  std::string line_source;
  // What else was found at its death, a line each, at most kMaxEvidenceLines: "cgroup /job: killed
  // 1 process for want of memory, limit 16 GiB".
  std::vector<std::string> evidence;
  std::string note;  // "error file unreadable: ...", hints
  // What it shows is what another's failure does to a rank: a connection that broke, a wait that
  // nobody ended. `blames`: the ranks that it names, "3", "0-2", "" if it names none.
  bool victim = false;
  std::string blames;
  // Set if communication with other ranks failed first: "timeout", "peer_lost", ... as the worker
  // library calls it, "operation_failed" if only its page tells.
  std::string comm_error;
  bool can_heal = true;    // a restart may help
  int64_t ran_us = -1;     // how long the worker ran; -1 if unknown
  int64_t time_us = 0;     // its end, unix time on the coordinator's clock; 0 if unknown
  std::string stdout_log;  // paths on `host`, "" if there is none
  std::string stderr_log;
};

inline constexpr size_t kMaxEvidenceLines = 12;

// Ranks that ended only because of the failure, folded, so that it is small for any world size.
struct VictimGroup {
  std::string ranks;   // "0-2,5"
  std::string reason;  // "stopped by muster"
};

// The victims of an attempt on all nodes. Recorded after its FailureFound where several nodes take
// part; with one node they are seen from the ranks themselves.
struct VictimsFound {
  int attempt = 0;
  std::vector<VictimGroup> groups;
};

// Who keeps whom waiting in the operations of communicators (diagnosis/collectives.h): the short
// and the structured form of one sentence.
struct CollectiveFinding {
  std::string kind;          // missing, mismatch, message, circle, died, stuck
  std::string communicator;  // its name
  std::string operation;     // "all_reduce"
  int64_t sequence = 0;      // its number in the communicator
  int64_t bytes = -1;        // -1: it has none
  std::string data_type;     // "float32", "" likewise
  std::string suspects;      // ranks to look at, "3", "0-2,5"; "" if there are none
  std::string waiting;       // ranks
  int64_t waited_us = 0;     // the longest of them
  std::string text;
};

// What an attempt's workers were doing when it was ended. After its FailureFound, if there is one.
struct CollectivesFound {
  int attempt = 0;
  std::vector<CollectiveFinding> found;  // what explains most first
  int left_out = 0;
};

// The job makes no progress any more (supervisor/hang). Recorded where the coordinator is.
struct StallFound {
  int attempt = 0;
  // What it looks like: rank_missing, spinning, all_idle, stopped, in_kernel, after_traceback,
  // in_teardown.
  std::string kind;
  std::string suspects;  // ranks that differ from the others, "3"; "" if none does
  std::string waiting;   // ranks that can do nothing about it
  int64_t since_us = 0;  // unix time on the coordinator's clock: the last sign of life
  std::string text;      // one line: who, since when, in what
};

// It goes on, or has ended.
struct StallOver {
  int attempt = 0;
  int64_t lasted_us = 0;
  std::string how;  // "rank 3 wrote again"
};

// Stacks and other evidence of running workers were saved on one node.
struct EvidenceSaved {
  int attempt = 0;
  std::string host{};
  std::string why;                  // "stalled", "asked by HTTP from 127.0.0.1"
  std::string folder;               // on that host
  std::vector<std::string> groups;  // ranks with like stacks: "ranks 0-2: pthread_cond_wait < ..."
  std::string trouble;              // what could not be had, and why
};

struct RestartScheduled {
  int next_attempt = 0;
  int used = 0;
  int max = 0;
  bool charged = true;   // false: only membership changed, which costs nothing of the budget
  int64_t delay_ms = 0;  // it is put off so long (--restart-backoff)
};

// No other attempt follows a failure, and why.
struct RestartDenied {
  int attempt = 0;
  std::string reason;  // "no restart was allowed (--max-restarts 0)"
};

struct LeftoverFound {
  int pid = 0;
  std::string command;
  std::string state;  // "D", "Z", ...
  std::string wait_channel;
  bool ended = true;   // false: it is still there
  std::string fate;    // "ended by SIGKILL", or why it could not be ended
  std::string host{};  // where, in the record of the coordinator of several nodes
};

// A node has come. Recorded where the coordinator is.
struct NodeJoined {
  std::string id;
  std::string host;
  std::string address;
  int pid = 0;  // its muster's
  int workers = 0;
  bool spare = false;     // beyond the most that the job takes
  std::string log_dir{};  // the run's folder there, "" without logs
};

// A node has gone. `how` is closed (its connection, so its process), silent (no heartbeat), left
// (on request).
struct NodeLost {
  std::string id;
  std::string host;
  int node = -1;  // GROUP_RANK in the current attempt, -1 if it had no part in it
  std::string how;
  std::string message;
};

// The job waits for nodes; recorded whenever who is here changes, and now and then.
struct NodesAwaited {
  int have = 0;
  int min = 0;
  int max = 0;
  std::vector<std::string> hosts;  // the first of them, "a (8)"
  int64_t left_ms = 0;             // until it is given up, or begins with those it has
  std::string text;                // "2 of 4 nodes: have a (8), b (8); waiting for 2 more, ..."
};

// Trouble that is not a worker's: store peers, log disk, guard.
struct Trouble {
  std::string subject;  // "store", "logs", "guard"
  std::string message;
};

struct JobEnded {
  Outcome outcome = Outcome::kSucceeded;
  int exit_code = 0;
  std::string why;  // "" unless something else than a worker or a signal ended it
  // What ended it if no worker did: stopped_by_user, stopped_by_scheduler, coordinator_lost,
  // rendezvous_timeout; "" otherwise.
  std::string kind{};
};

}  // namespace event

using EventBody =
    std::variant<event::JobStarted, event::AttemptStarted, event::WorkerSpawned, event::SpawnFailed,
                 event::FirstOutput, event::WorkerExited, event::SignalSent, event::SignalReceived,
                 event::StopOrdered, event::RestartRequested, event::FailureFound,
                 event::VictimsFound, event::CollectivesFound, event::StallFound, event::StallOver,
                 event::EvidenceSaved, event::RestartScheduled, event::RestartDenied,
                 event::LeftoverFound, event::NodeJoined, event::NodeLost, event::NodesAwaited,
                 event::Trouble, event::JobEnded>;

struct Event {
  int64_t seq = 0;  // from 0, no gaps
  std::chrono::system_clock::time_point time{};
  int64_t mono_us = 0;  // since JobStarted
  EventBody body;
};

}  // namespace muster
