// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two nodes of two workers each: node-a with the coordinator, whose state has all ranks, or node-b,
// which knows its own.
struct NodesStory : JobStory {
  explicit NodesStory(bool coordinator) {
    event::JobStarted job;
    job.host = coordinator ? "node-a" : "node-b";
    job.local_world_size = 2;
    job.max_nodes = 2;
    job.max_restarts = 1;
    say(job);
    event::AttemptStarted started;
    started.attempt = attempt = 0;
    started.node = coordinator ? 0 : 1;
    started.node_count = 2;
    started.world_size = 4;
    started.master_addr = "node-a";
    started.master_port = 29400;
    if (coordinator) started.nodes.push_back({0, "node-a", 0, 2});
    started.nodes.push_back({1, "node-b", 2, 2});
    say(started);
    for (int rank = coordinator ? 0 : 2; rank < 4; ++rank)
      say(event::WorkerSpawned{0, rank, rank % 2, pid(rank)});
  }

  std::string line() const { return live_line(state, last()).value_or(""); }

  std::string report() const {
    std::string text;
    for (const std::string& one : final_report(state, nullptr))
      text += one + "\n";
    return text;
  }

  // What the coordinator tells of rank 3's end, the same on both nodes.
  void verdict() {
    event::FailureFound root = failure(3);
    root.local_rank = 1;
    root.host = "node-b";
    root.node = 1;
    root.pid = pid(3);
    root.ran_us = 1'500'000;
    root.time_us = 1'796'000'000'000'000;
    root.stderr_log = "/runs/b/attempt_0/1/stderr.log";
    say(root);
    say(event::VictimsFound{0, {{"0,2", "stopped by muster"}}});
  }
};

}  // namespace

TEST_CASE("both nodes report the same culprit, with its host") {
  NodesStory a(true), b(false);
  for (NodesStory* story : {&a, &b}) {
    story->verdict();
    story->ends(Outcome::kFailed, 3);
  }
  for (const std::string& text : {a.report(), b.report()}) {
    CAPTURE(text);
    CHECK(
        has(text, "muster: rank 3 (local 1) on node-b failed after 1.5 s · exited with code 3\n"));
    CHECK(has(text, "pid 1003 on node-b attempt 0 20"));
    CHECK(has(text, "victims      ranks 0, 2 (stopped by muster)\n"));
  }
  CHECK(has(a.report(), "  logs         node-b:/runs/b/attempt_0/1/stderr.log\n"));
  CHECK(has(b.report(), "  logs         /runs/b/attempt_0/1/stderr.log\n"));
  nlohmann::json of_a = nlohmann::json::parse(summary_json(a.state));
  nlohmann::json of_b = nlohmann::json::parse(summary_json(b.state));
  CHECK(of_a["root_cause"] == of_b["root_cause"]);
  CHECK(of_a["root_cause"]["host"] == "node-b");
  CHECK(of_a["victim_groups"] == of_b["victim_groups"]);
  CHECK(of_a["nodes"].size() == 2);
  CHECK(of_b["nodes"].size() == 1);
  CHECK(of_b["world_size"] == 4);
}

TEST_CASE("a lost node is the headline, and no rank is") {
  NodesStory a(true);
  a.say(event::NodeLost{"b", "node-b", 1, "closed", "node-b was lost: its connection was closed"});
  CHECK(a.line() == "node-b was lost: its connection was closed");
  event::FailureFound root;
  root.rank = -1;
  root.host = "node-b";
  root.node = 1;
  root.kind = "node_lost";
  root.message = "node-b was lost: its connection was closed";
  a.say(root).say(event::RestartScheduled{1, 0, 1, false});
  CHECK(a.line() ==
        "starting again with the nodes that are here (0 of 1 restarts used) after "
        "node-b was lost: its connection was closed");
  a.ends(Outcome::kFailed, 1);
  CHECK(has(a.report(), "muster: node-b failed · node-b was lost"));
  CHECK(has(a.report(), "root cause   node 1 on node-b attempt 0"));
  CHECK_FALSE(has(a.report(), "rank -1"));
}

TEST_CASE("a node says its part of an attempt, and why it had to stop") {
  NodesStory b(false);
  JobState before;
  std::string started;
  for (const Event& event : b.events) {
    apply(before, event);
    if (auto line = live_line(before, event)) started = *line;
  }
  CHECK(started == "attempt 0 · node 1 of 2 · ranks 2-3 of 4 · store node-a:29400");
  b.say(event::StopOrdered{0, SIGTERM, StopReason::kFailure, "rank 0 on node-a failed"});
  CHECK(b.line() == "rank 0 on node-a failed; stopping ranks 2-3");
}

TEST_CASE("every node says who asked for a restart, once") {
  NodesStory a(true), b(false);
  a.say(event::RestartRequested{0, "HTTP from 10.0.0.7", "node-b"});
  CHECK(a.line().empty());
  const event::StopOrdered order{0, SIGTERM, StopReason::kRestart,
                                 "restarting: asked for by HTTP from 10.0.0.7 on node-b"};
  for (NodesStory* node : {&a, &b}) {
    node->say(order);
    CHECK(has(node->line(), "restarting: asked for by HTTP from 10.0.0.7 on node-b; stopping"));
    node->say(event::RestartScheduled{1, 0, 1, false});
    CHECK(node->line() == "starting again as asked (0 of 1 restarts used)");
  }
}

TEST_CASE("what still runs on another node is told with its host") {
  NodesStory a(true);
  a.say(event::LeftoverFound{77, "dd", "D", "nfs_wait", false, "does not die", "node-b"});
  a.ends(Outcome::kFailed, 1);
  CHECK(has(a.report(), "still running: pid 77 dd on node-b in state D (nfs_wait): does not die"));
  CHECK(nlohmann::json::parse(summary_json(a.state))["leftovers"][0]["host"] == "node-b");
}

TEST_CASE("who was signalled says it once, the others hear whose signal it was") {
  NodesStory a(true), b(false);
  event::SignalReceived signal{SIGTERM, 12, 1000, "alice, kill", false, "node-b"};
  b.say(signal);
  CHECK(has(b.line(), "got SIGTERM on node-b from pid 12 (alice, kill); stopping 2 workers"));
  event::StopOrdered order{0, SIGTERM, StopReason::kSignal, describe_signal(signal)};
  b.say(order);
  CHECK(b.line().empty());
  a.say(order);
  CHECK(a.line() == "SIGTERM on node-b from pid 12 (alice, kill); stopping ranks 0-1");
  a.ends(Outcome::kStopped, 143);
  CHECK(has(a.report(), "SIGTERM on node-b from pid 12 (alice, kill)"));
  nlohmann::json summary = nlohmann::json::parse(summary_json(a.state));
  CHECK(summary["stop"]["signal"] == "SIGTERM");
}

TEST_CASE("the coordinator's node names the host of a rank that failed elsewhere") {
  NodesStory a(true);
  a.exits(3, 3 << 8);
  CHECK(has(a.line(), "rank 3 (pid 1003) on node-b exited with code 3 after"));
  CHECK_FALSE(has(a.line(), "stopping"));  // the order has said it
  // What another node kills is that node's to tell.
  a.stops(2, SIGKILL);
  CHECK(a.line().empty());
  a.stops(0, SIGKILL);
  CHECK(has(a.line(), "did not stop; killing"));
}

TEST_CASE("a success counts the workers of all nodes") {
  NodesStory b(false);
  b.exits(2, 0).exits(3, 0).ends(Outcome::kSucceeded, 0);
  CHECK(has(b.report(), "muster: 4 workers on 2 nodes finished in "));
  JobStory spare;
  event::JobStarted job;
  job.local_world_size = 2;
  job.max_nodes = 2;
  spare.say(job).say(event::RestartScheduled{1, 1, 1, true});
  CHECK_FALSE(live_line(spare.state, spare.last()));
  spare.ends(Outcome::kSucceeded, 0);
  CHECK(has(final_report(spare.state, nullptr)[0], "this spare node was not needed"));
}

TEST_CASE("an end that neither a worker nor a signal caused says why") {
  JobStory story;
  story.start(1).say(event::NodesAwaited{1, 2, 2, {"a (1)"}, 5'000, "1 of 2 nodes"});
  CHECK(live_line(story.state, story.last()) == "1 of 2 nodes");
  CHECK(story.state.phase == Phase::kWaiting);
  story.say(event::JobEnded{Outcome::kFailed, 1, "not enough nodes came within 10:00"});
  CHECK(has(final_report(story.state, nullptr)[0], "· not enough nodes came within 10:00"));
}

}  // namespace muster
