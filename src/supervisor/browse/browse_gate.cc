// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/browse_gate.h"

#include <deque>
#include <utility>

#include "loop/pool.h"

namespace muster {

namespace {

struct Job {
  std::function<void()> piece;
  std::function<void()> after;
  BrowseGate::Urgency urgency;
  bool wanted = false;   // waits in a queue
  bool running = false;  // on the pool
  bool again = false;    // woken while it ran
  bool dropped = false;
};

}  // namespace

struct BrowseGate::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(Loop& the_loop) : loop(the_loop) {}

  Loop& loop;
  std::deque<std::shared_ptr<Job>> asked, idle;
  bool running = false;
  bool closed = false;
  int64_t pieces = 0;

  void wake(const std::shared_ptr<Job>& job) {
    if (closed || job->wanted) return;
    if (job->running) {
      job->again = true;
      return;
    }
    job->wanted = true;
    (job->urgency == Urgency::kAsked ? asked : idle).push_back(job);
    next();
  }

  std::shared_ptr<Job> take() {
    for (auto* queue : {&asked, &idle}) {
      while (!queue->empty()) {
        std::shared_ptr<Job> job = std::move(queue->front());
        queue->pop_front();
        if (!job->dropped) return job;
      }
    }
    return nullptr;
  }

  void next() {
    if (running || closed) return;
    std::shared_ptr<Job> job = take();
    if (!job) return;
    running = job->running = true;
    job->wanted = false;
    ++pieces;
    run_in_pool(
        loop, [job] { job->piece(); }, [self = shared_from_this(), job] { self->on_done(job); });
  }

  void on_done(const std::shared_ptr<Job>& job) {
    running = job->running = false;
    if (!job->dropped && !closed) {
      if (std::exchange(job->again, false)) wake(job);
      // It may drop its job, and with that itself.
      auto after = job->after;
      after();
    }
    next();
  }
};

class BrowseGate::JobHandle final : public BrowseJob {
 public:
  JobHandle(std::weak_ptr<Impl> gate, std::shared_ptr<Job> job)
      : gate_(std::move(gate)), job_(std::move(job)) {}
  ~JobHandle() override {
    job_->dropped = true;
    job_->after = nullptr;
    if (!job_->running) job_->piece = nullptr;
  }
  void wake() override {
    if (auto gate = gate_.lock()) gate->wake(job_);
  }

 private:
  std::weak_ptr<Impl> gate_;
  std::shared_ptr<Job> job_;
};

BrowseGate::BrowseGate(Loop& loop) : impl_(std::make_shared<Impl>(loop)) {}

BrowseGate::~BrowseGate() {
  impl_->closed = true;
  impl_->asked.clear();
  impl_->idle.clear();
}

std::unique_ptr<BrowseJob> BrowseGate::add(std::function<void()> piece, std::function<void()> after,
                                           Urgency urgency) {
  auto job = std::make_shared<Job>();
  job->piece = std::move(piece);
  job->after = std::move(after);
  job->urgency = urgency;
  return std::make_unique<JobHandle>(impl_, std::move(job));
}

int64_t BrowseGate::pieces() const {
  return impl_->pieces;
}

}  // namespace muster
