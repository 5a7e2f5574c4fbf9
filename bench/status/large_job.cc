// SPDX-License-Identifier: Apache-2.0
// A job of many ranks in front of the real status server, for watching.py.
//
//   large_job RANKS           prints the server's address and serves until it is killed
//   large_job RANKS TIMES     builds /status so many times and prints its bytes and the
//   microseconds
//                             that it took: the median and the 99th percentile

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "loop/loop.h"
#include "supervisor/status/status_json.h"
#include "supervisor/status/status_server.h"

namespace {

using namespace muster;

constexpr int kRanksOfNode = 8;

int64_t unix_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

class LargeJob final : public JobSource {
 public:
  explicit LargeJob(int ranks) : ranks_(ranks) {
    event::JobStarted job;
    job.run_id = "bench";
    job.host = "node-0";
    job.program = "train.py";
    job.world_size = ranks;
    job.max_restarts = 3;
    say(job);
    event::AttemptStarted attempt;
    attempt.world_size = ranks;
    attempt.node_count = ranks / kRanksOfNode;
    for (int node = 0; node < attempt.node_count; ++node) {
      const std::string n = std::to_string(node);
      say(event::NodeJoined{"id-" + n, "node-" + n, "10.0.0." + n, 70, kRanksOfNode, false});
      attempt.nodes.push_back({node, "node-" + n, node * kRanksOfNode, kRanksOfNode, "id-" + n});
    }
    say(attempt);
    for (int rank = 0; rank < ranks; ++rank)
      say(event::WorkerSpawned{0, rank, rank % kRanksOfNode, 1000 + rank});
  }

  const JobState& state() const override { return state_; }
  int64_t next_seq() const override { return seq_; }
  std::vector<Event> recent_events() const override { return {}; }
  void set_observer(std::function<void(const Event&)>) override {}
  bool live() const override { return true; }
  std::string run_dir() const override { return ""; }
  const std::string& host() const override { return state_.job.host; }
  bool hosting() const override { return true; }
  bool forward(int, int, std::unique_ptr<HttpExchange>&) override { return false; }
  std::string stop(const std::string&, bool) override { return "this is a bench"; }
  std::string restart(const std::string&) override { return "this is a bench"; }
  std::string dump(const std::string&, OnDumped) override { return "this is a bench"; }

  std::vector<RankSample> samples() override {
    std::vector<RankSample> samples(static_cast<size_t>(ranks_));
    const int64_t now_us = unix_now_us();
    for (int rank = 0; rank < ranks_; ++rank) {
      RankSample& one = samples[static_cast<size_t>(rank)];
      one.rank = rank;
      one.time_us = now_us;
      one.last_output_us = now_us - rank * 100;
      one.cpu = 1.25;
      one.rss_bytes = 12'345'678'901 + rank;
      one.gpu = 0.97;
      one.gpu_memory_bytes = 70'000'000'000;
      one.step = 1'000 + rank % 5;
      one.steps = 100'000;
      one.steps_per_s = 2.5;
      one.loss = 0.125;
    }
    return samples;
  }
  // Half of them wait for keys of their own.
  std::vector<StoreWaiter> store_waiters() const override {
    std::vector<StoreWaiter> waiters;
    for (int rank = 0; rank < ranks_; rank += 2)
      waiters.push_back({"10.0.0.1:4000",
                         static_cast<uint32_t>(1000 + rank),
                         Clock::now(),
                         false,
                         {"/default_pg/0//cuda//" + std::to_string(rank) + "/0"}});
    return waiters;
  }
  std::optional<StoreCounters> store_counters() const override { return StoreCounters(); }

 private:
  void say(EventBody body) {
    Event event;
    event.seq = seq_++;
    event.time = std::chrono::system_clock::now();
    event.body = std::move(body);
    apply(state_, event);
  }

  int ranks_;
  JobState state_;
  int64_t seq_ = 0;
};

int measure(LargeJob& job, int times) {
  std::vector<double> took;
  std::string body;
  for (int i = 0; i < times; ++i) {
    const StatusFacts facts{view_of(job), job.samples(), job.store_waiters(), job.store_counters(),
                            Clock::now()};
    const auto began = Clock::now();
    write_status(body, facts, std::nullopt);
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
  }
  std::sort(took.begin(), took.end());
  std::printf("%zu %.1f %.1f\n", body.size(), took[took.size() / 2], took[took.size() * 99 / 100]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Loop loop;
  LargeJob job(std::atoi(argv[1]));
  if (argc > 2) return measure(job, std::max(1, std::atoi(argv[2])));
  StatusServer::Settings settings;
  settings.token = make_status_token();
  auto server = StatusServer::start(loop, settings, job);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  loop.run();
  return 0;
}
