// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "supervisor/job/event.h"
#include "supervisor/job/state.h"

namespace muster {

// Tells a job's events one by one, as the job itself would: numbers, clock and state in step.
struct JobStory {
  std::vector<Event> events;
  JobState state;
  int64_t now_us = 0;
  int attempt = -1;

  // 2026-11-29T12:00:00Z
  static constexpr int64_t kStartSeconds = 1'795'953'600;

  JobStory& after_ms(int64_t ms) { return now_us += ms * 1000, *this; }

  JobStory& say(EventBody body) {
    Event event;
    event.seq = static_cast<int64_t>(events.size());
    event.time =
        std::chrono::system_clock::from_time_t(kStartSeconds) + std::chrono::microseconds(now_us);
    event.mono_us = now_us;
    event.body = std::move(body);
    apply(state, event);
    events.push_back(std::move(event));
    return *this;
  }

  JobStory& start(int workers, int max_restarts = 0, std::string log_dir = "/runs/4f1c") {
    event::JobStarted job;
    job.run_id = "4f1c";
    job.host = "node-a";
    job.program = "train.py";
    job.command = {"muster", "train.py"};
    job.log_dir = std::move(log_dir);
    job.world_size = job.local_world_size = workers;
    job.max_restarts = max_restarts;
    job.pid = 99;
    job.started_by = "alice";
    return say(job);
  }

  // Of a job of `ranks`, the first `workers` of which get started.
  JobStory& start_attempt(int workers, int ranks) {
    event::AttemptStarted started;
    started.attempt = started.restart_count = ++attempt;
    started.world_size = ranks;
    started.master_addr = "127.0.0.1";
    started.master_port = 29500;
    started.nodes = {{0, "node-a", 0, ranks}};
    say(started);
    for (int i = 0; i < workers; ++i)
      say(event::WorkerSpawned{attempt, i, i, pid(i)});
    return *this;
  }

  JobStory& start_attempt(int workers) { return start_attempt(workers, workers); }

  int pid(int rank) const { return 1000 + 100 * attempt + rank; }

  JobStory& exits(int rank, int wait_status) {
    return say(event::WorkerExited{attempt, rank, rank, pid(rank), wait_status, 5000});
  }

  JobStory& stops(int rank, int signal, StopReason reason = StopReason::kFailure) {
    return say(event::SignalSent{attempt, rank, pid(rank), signal, false, reason});
  }

  event::FailureFound failure(int rank, std::string message = "exited with code 3") const {
    event::FailureFound found;
    found.attempt = attempt;
    found.rank = found.local_rank = rank;
    found.pid = pid(rank);
    found.kind = "exit_code";
    found.exit_code = 3;
    found.message = std::move(message);
    found.host = state.job.host;
    const RankState* of = state.current() ? state.current()->find(rank) : nullptr;
    if (of == nullptr || of->pid == 0) return found;
    const int64_t end_us = of->ended_us > 0 ? of->ended_us : state.last_us;
    found.ran_us = end_us - of->started_us;
    found.time_us = (state.started + std::chrono::microseconds(end_us)).time_since_epoch() /
                    std::chrono::microseconds(1);
    return found;
  }

  JobStory& ends(Outcome outcome, int code) { return say(event::JobEnded{outcome, code, ""}); }

  const Event& last() const { return events.back(); }
};

inline bool operator==(const RankState& a, const RankState& b) {
  return a.rank == b.rank && a.local_rank == b.local_rank && a.pid == b.pid && a.phase == b.phase &&
         a.wait_status == b.wait_status && a.max_rss_kib == b.max_rss_kib &&
         a.started_us == b.started_us && a.ended_us == b.ended_us &&
         a.wrote_stdout == b.wrote_stdout && a.wrote_stderr == b.wrote_stderr &&
         a.stopped_for == b.stopped_for && a.stop_signal == b.stop_signal;
}

// A job in which everything happens once, to be written, read and rebuilt.
inline JobStory eventful_story() {
  JobStory story;
  story.start(3, 1).after_ms(20).start_attempt(3);
  story.after_ms(50).say(event::FirstOutput{0, 1, Stream::kStderr});
  story.say(event::FirstOutput{0, 2, Stream::kStdout});
  story.after_ms(12'000).exits(1, 3 << 8);
  event::FailureFound found = story.failure(1,
                                            "ValueError: b\xC3\xA4"
                                            "d (train.py:41)");
  found.kind = "python_exception";
  found.excerpt = {"Traceback (most recent call last):", "  \"quoted\"\t", "ValueError"};
  found.excerpt_source = "stderr";
  found.note = "note";
  found.line = "ValueError: bad";
  found.line_source = "stderr";
  found.evidence = {"cgroup /job: killed 1 process"};
  found.victim = true;
  found.blames = "0";
  story.say(event::StallFound{0, "spinning", "1", "0,2", 1'700'000'000'000'000, "rank 1 spins"});
  story.say(
      event::EvidenceSaved{0, "node-a", "stalled", "/logs/stall_0", {"ranks 0,2: wait"}, "?"});
  story.say(event::StallOver{0, 7'000'000, "rank 1 wrote again"});
  story.stops(0, 15).stops(2, 15).after_ms(10).exits(0, 15).after_ms(30'000).stops(2, 9);
  story.exits(2, 9).say(found).say(event::RestartScheduled{1, 1, 1, true});
  story.say(event::VictimsFound{0, {{"0,2", "stopped by muster"}}});
  story.say(event::CollectivesFound{0,
                                    {{"missing", "world", "all_reduce", 128, 4'200'000, "float32",
                                      "1", "0,2", 61'000'000, "rank 1 never entered all_reduce"}},
                                    2});
  story.say(event::Trouble{"store", "peer 127.0.0.1:5 sent nonsense"});
  story.say(event::NodeJoined{"n1", "node-b", "10.0.0.2", 7, 8, false, "/logs/b"});
  story.say(event::NodeLost{"n1", "node-b", 1, "closed", "its connection was closed"});
  story.say(event::NodesAwaited{1, 2, 4, {"node-a (3)"}, 30'000, "1 of 2 nodes: have node-a (3)"});
  story.after_ms(5).start_attempt(2, 3).say(event::SpawnFailed{1, 2, 2, 2, "not there"});
  found = story.failure(2, "not there");
  found.can_heal = false;
  story.stops(0, 15).stops(1, 15).exits(0, 0).exits(1, 7 << 8).say(found).say(story.failure(1));
  story.say(event::SignalReceived{2, 0, 0, "", false, "node-b"});
  story.say(event::StopOrdered{1, 2, StopReason::kSignal, "SIGINT on node-b"});
  story.say(event::RestartRequested{1, "HTTP from 127.0.0.1", "node-b"});
  story.say(event::SignalReceived{10, 55, 1000, "alice, kill", true, ""});
  story.say(event::LeftoverFound{77, "sleep 99", "S", "hrtimer_nanosleep", true, "ended by SIGTERM",
                                 "node-b"});
  story.say(event::RestartDenied{1, "no restart is left"});
  story.ends(Outcome::kFailed, 127);
  return story;
}

}  // namespace muster
