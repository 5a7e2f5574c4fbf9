// SPDX-License-Identifier: Apache-2.0
// How a job stops: for a failure, a signal, a request or an order of the coordinator.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/job/job.h"
#include "supervisor/job/known_operations.h"
#include "supervisor/job/outcome.h"

namespace muster {

namespace {

// Most stops are over by then. Part of the second in which a failure is explained.
constexpr Milliseconds kEarlyWord{200};

// That an order may name: more are stopped without a word of their own.
constexpr size_t kMaxHungRanks = 100'000;

}  // namespace

void Job::begin_stop(int signal, StopReason reason, const std::set<int>& hung_local_ranks) {
  const bool first = !stopped_;
  note_stop();
  group_->stop(signal, reason, hung_local_ranks);
  if (!first || reason != StopReason::kFailure) return;
  early_ = Timer::start(parts_.loop, kEarlyWord, [this] { tell_early(); });
}

// Nobody waits with the reason until the last worker has obeyed.
void Job::tell_early() {
  early_.reset();
  if (alone_ || early_end_) return;
  gathering_early_ = true;
  gather([this](const std::vector<Evidence>& evidence) {
    gathering_early_ = false;
    NodeOutcome so_far =
        outcome_for(ends_of(parts_.recorder.state(), parts_.logs, evidence, stuck_));
    so_far.early = true;
    parts_.link.ending(so_far);
    settle_if_quiet();
  });
}

// Those of this node, as local ranks.
std::set<int> Job::own_ranks(const std::string& ranges) const {
  std::set<int> local_ranks;
  const int workers = static_cast<int>(parts_.plan.workers.size());
  for (int rank : parse_ranges(ranges, kMaxHungRanks)) {
    const int local_rank = rank - assignment_.first_rank;
    if (local_rank >= 0 && local_rank < workers) local_ranks.insert(local_rank);
  }
  return local_ranks;
}

void Job::kill_now(StopReason reason) {
  note_stop();
  group_->kill_now(reason);
}

// What the workers were doing is read before they hear of it.
void Job::note_stop() {
  if (auto hold = std::move(hold_)) fail_of(hold->first());
  if (!stopped_) operations_ = known_operations(*parts_.recorder.state().current(), *pages_);
  stage_ = Stage::kStopping;
  stopped_ = true;
}

void Job::on_stop(const StopOrder& order) {
  // Elsewhere somebody has failed: there is nobody to wait for.
  if (hold_ && !has_workers() && order.attempt == assignment_.attempt) hold_->give_up();
  if (!has_workers() || order.attempt != assignment_.attempt) return;
  if (several_nodes()) {
    parts_.recorder.record(
        event::StopOrdered{order.attempt, order.signal, order.reason, order.why});
  }
  if (order.kill) return kill_now(order.reason);
  // Our own signal has reached the workers already, and a stop needs no second reason.
  const bool news = order.reason == StopReason::kSignal && stop_signal_ == 0;
  if (stage_ == Stage::kRunning || news) {
    begin_stop(order.signal, order.reason, own_ranks(order.hung));
  }
}

void Job::on_signal(event::SignalReceived signal) {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  const bool stops =
      std::find(stop_signals_.begin(), stop_signals_.end(), signal.signal) != stop_signals_.end();
  signal.forwarded = !stops;
  if (several_nodes()) signal.host = parts_.plan.host;
  parts_.recorder.record(signal);
  if (!stops) {
    if (stage_ == Stage::kRunning) group_->forward(signal.signal);
    return;
  }
  if (signal.signal == SIGINT) ++interrupts_;
  if (stop_signal_ == 0) stop_signal_ = signal.signal;
  const bool kill = signal.signal == SIGINT && interrupts_ > 1;
  stop_here(signal, kill);
  if (stage_ == Stage::kEnded) return;
  const bool leaves =
      several_nodes() && parts_.plan.rendezvous.on_node_signal == OnNodeSignal::kLeave;
  if (leaves && !alone_) {
    alone_ = true;
    parts_.link.leave();
  }
  stop_everywhere(signal, kill);
}

std::string Job::request_stop(const std::string& who, bool kill) {
  if (stage_ == Stage::kIdle) return "the job has not begun";
  if (stage_ == Stage::kEnded) return "the job has ended";
  event::SignalReceived signal;
  signal.signal = SIGTERM;
  signal.sender = who;
  if (several_nodes()) signal.host = parts_.plan.host;
  parts_.recorder.record(signal);
  if (stop_signal_ == 0) stop_signal_ = SIGTERM;
  stop_here(signal, kill);
  stop_everywhere(signal, kill);
  return "";
}

std::string Job::request_restart(const std::string& who) {
  if (stage_ == Stage::kIdle) return "the job has not begun";
  if (stage_ == Stage::kEnded) return "the job has ended";
  if (alone_) return "this node has left the job";
  return parts_.link.request_restart(who);
}

void Job::stop_everywhere(const event::SignalReceived& signal, bool kill) {
  if (stage_ == Stage::kEnded) return;
  if (!alone_ && !parts_.link.request_stop(signal, kill)) alone_ = true;
  if (alone_ && stage_ == Stage::kWaiting) end_alone();
}

// Our own workers hear of it without a detour, so that a coordinator that does not answer costs
// them nothing of their grace.
void Job::stop_here(const event::SignalReceived& signal, bool kill) {
  if (!has_workers()) return;
  kill ? kill_now(StopReason::kSignal) : begin_stop(signal.signal, StopReason::kSignal);
}

void Job::on_front_lost() {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  front_lost_ = alone_ = true;
  parts_.recorder.record(
      event::Trouble{"guard", "muster's front process was killed: every worker is ended at once"});
  if (stage_ == Stage::kWaiting) return end_alone();
  if (has_workers()) kill_now(StopReason::kGuardLost);
}

}  // namespace muster
