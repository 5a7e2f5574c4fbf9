// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/rendezvous/rendezvous.h"

namespace muster {

// A plan of `min` to `max` nodes that meet at a port of this machine.
inline LaunchPlan plan_of(int min, int max, int port, const std::string& host = "node-a") {
  LaunchPlan plan;
  plan.run_id = "run-1";
  plan.host = host;
  RendezvousPlan& rendezvous = plan.rendezvous;
  rendezvous.meeting = Meeting::kDynamic;
  rendezvous.min_nodes = min;
  rendezvous.max_nodes = max;
  rendezvous.endpoint_host = "127.0.0.1";
  rendezvous.endpoint_port = port;
  rendezvous.join_timeout = Milliseconds(20'000);
  rendezvous.last_call_timeout = Milliseconds(50);
  rendezvous.keep_alive_interval = Milliseconds(100);
  return plan;
}

// One node's muster without its workers: the test plays the job. What comes is kept in order.
class TestNode {
 public:
  TestNode(Loop& loop, LaunchPlan plan, int workers = 1, int max_restarts = 0)
      : plan_(std::move(plan)) {
    NodeFacts facts;
    facts.host = plan_.host;
    facts.pid = 1;
    facts.workers = workers;
    facts.terms = {plan_.rendezvous.min_nodes, plan_.rendezvous.max_nodes, max_restarts, false,
                   plan_.agent_store};
    auto made = Rendezvous::create(loop, plan_, facts, outside());
    if (!made) FAIL(made.error().message);
    link = std::move(*made);
  }

  // The job's part is over here.
  void settle(bool complete, std::optional<event::FailureFound> root = std::nullopt) {
    NodeOutcome outcome;
    outcome.attempt = assignment->attempt;
    outcome.complete = complete;
    outcome.root = std::move(root);
    running = false;
    link->settled(outcome);
  }

  void fail(int exit_code) {
    event::FailureFound failure;
    failure.attempt = assignment->attempt;
    failure.rank = assignment->first_rank;
    failure.host = plan_.host;
    failure.node = assignment->node;
    failure.kind = "exit_code";
    failure.exit_code = exit_code;
    failure.message = "it failed";
    link->failed({assignment->attempt, failure});
    settle(false, failure);
  }

  void close() {
    link->close([this] { closed = true; });
  }

  bool called(const std::string& what) const {
    return std::find(calls.begin(), calls.end(), what) != calls.end();
  }
  int attempt() const { return running ? assignment->attempt : -1; }

  // Whether a line for the console has `part`.
  bool said(const std::string& part) const {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  // For a test that fails.
  void tell() const {
    for (const std::string& line : lines)
      MESSAGE(plan_.host, " said: ", line);
    for (const std::string& call : calls)
      MESSAGE(plan_.host, " got: ", call);
    if (end) MESSAGE(plan_.host, " ended: ", end->why);
  }

  template <typename T>
  const T* recorded() const {
    for (const EventBody& body : records) {
      if (const T* found = std::get_if<T>(&body)) return found;
    }
    return nullptr;
  }

  std::unique_ptr<Rendezvous> link;
  std::vector<std::string> calls;
  std::vector<std::string> lines;
  std::vector<EventBody> records;     // for its own record, from wherever
  std::vector<std::string> evidence;  // why it was to be saved
  std::optional<Assignment> assignment;
  std::optional<StopOrder> stop;
  std::optional<AttemptVerdict> verdict;
  std::optional<JobEnd> end;
  bool running = false;
  bool closed = false;
  bool stops_at_once = true;  // settles an ordered stop without delay
  std::function<void(std::unique_ptr<HttpExchange>)> on_request;  // its HTTP handler
  std::vector<RankSample> samples;                                // of its workers
  std::vector<std::pair<int, RankSample>> heard;                  // attempt, another node's

 private:
  Rendezvous::Outside outside() {
    Rendezvous::Outside outside;
    outside.job.on_assignment = [this](const Assignment& a) {
      CHECK(!running);
      running = true;
      assignment = a;
      calls.push_back("assignment");
    };
    outside.job.on_stop = [this](const StopOrder& order) {
      stop = order;
      calls.push_back("stop");
      if (running && stops_at_once) settle(false);
    };
    outside.job.on_verdict = [this](const AttemptVerdict& v) {
      verdict = v;
      calls.push_back("verdict");
    };
    outside.job.on_evidence = [this](const std::string& why) { evidence.push_back(why); };
    outside.job.on_end = [this](const JobEnd& e) {
      CHECK(!running);
      end = e;
      calls.push_back("end");
    };
    outside.job.on_say = [this](const std::string& line) { lines.push_back(line); };
    outside.job.on_event = [this](EventBody body) { records.push_back(std::move(body)); };
    outside.on_record = [this](EventBody body) { records.push_back(std::move(body)); };
    outside.on_request = [this](std::unique_ptr<HttpExchange> exchange) {
      if (on_request) on_request(std::move(exchange));
    };
    outside.take_samples = [this] { return samples; };
    outside.on_samples = [this](int attempt, std::vector<RankSample> batch) {
      for (RankSample& sample : batch)
        heard.emplace_back(attempt, std::move(sample));
    };
    return outside;
  }

  LaunchPlan plan_;
};

}  // namespace muster
