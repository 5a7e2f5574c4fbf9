// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/follower.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "loop/timer.h"
#include "supervisor/browse/follow_work.h"
#include "supervisor/browse/growth_watch.h"

namespace muster {

namespace {

// A log that is written all the time is looked at this often; one that was silent, at once.
constexpr Milliseconds kLeastInterval{50};

class FollowerImpl final : public LogReader::Follower {
 public:
  FollowerImpl(Loop& loop, BrowseGate& gate, std::shared_ptr<IndexedLog> log,
               LogReader::FollowSettings settings, std::shared_ptr<size_t> followers,
               std::function<void(Result<LogPage>)> on_page)
      : loop_(loop),
        path_(log->path()),
        followers_(std::move(followers)),
        on_page_(std::move(on_page)),
        work_(std::make_shared<FollowWork>(std::move(log), settings)) {
    ++*followers_;
    job_ = gate.add([work = work_] { work->run(); }, [this] { on_looked(); });
    look();
  }
  ~FollowerImpl() override { --*followers_; }

  void set_paused(bool paused) override {
    if (paused_ == paused) return;
    paused_ = paused;
    if (paused || looking_) return;
    pause_.reset();
    // Posted: pages come from the loop, never inside a call.
    if (held_) {
      pause_ = Timer::start(loop_, Milliseconds(0), [this] { hand_over(); });
    } else if (!ended_) {
      look();
    }
  }

 private:
  void look() {
    looking_ = true;
    job_->wake();
  }

  void on_looked() {
    looking_ = false;
    held_ = work_->take();
    if (held_ && !paused_) return hand_over();
    go_on();
  }

  // Calls out last: whoever is called may drop us.
  void hand_over() {
    Result<LogPage> page = *std::exchange(held_, std::nullopt);
    ended_ = !page;
    std::weak_ptr<FollowerImpl*> alive = self_;
    auto on_page = on_page_;
    on_page(std::move(page));
    if (alive.lock()) go_on();
  }

  void go_on() {
    if (paused_ || ended_ || held_ || looking_) return;
    if (work_->more()) return look();
    if (watch_) return;
    auto since = std::chrono::duration_cast<Milliseconds>(Clock::now() - watched_at_);
    if (since < kLeastInterval) {
      pause_ = Timer::start(loop_, kLeastInterval - since, [this] { go_on(); });
      return;
    }
    // Watched first, then looked, so that nothing is missed between the two.
    watched_at_ = Clock::now();
    watch_.emplace(loop_, path_, work_->watchable(), [this] {
      watch_.reset();
      go_on();
    });
    look();
  }

  Loop& loop_;
  std::string path_;
  std::shared_ptr<size_t> followers_;
  std::function<void(Result<LogPage>)> on_page_;
  std::shared_ptr<FollowWork> work_;
  std::unique_ptr<BrowseJob> job_;
  std::optional<GrowthWatch> watch_;
  Owned<Timer> pause_;
  Clock::time_point watched_at_;
  std::optional<Result<LogPage>> held_;  // came while paused
  bool looking_ = false;
  bool paused_ = false;
  bool ended_ = false;
  std::shared_ptr<FollowerImpl*> self_ = std::make_shared<FollowerImpl*>(this);
};

class RefusedFollower final : public LogReader::Follower {
 public:
  RefusedFollower(Loop& loop, Error why, std::function<void(Result<LogPage>)> on_page)
      : timer_(Timer::start(loop, Milliseconds(0),
                            [why = std::move(why), on_page = std::move(on_page)] {
                              auto call = on_page;
                              call(why);
                            })) {}
  void set_paused(bool) override {}

 private:
  Owned<Timer> timer_;
};

}  // namespace

std::unique_ptr<LogReader::Follower> make_follower(Loop& loop, BrowseGate& gate,
                                                   std::shared_ptr<IndexedLog> log,
                                                   LogReader::FollowSettings settings,
                                                   std::shared_ptr<size_t> followers,
                                                   std::function<void(Result<LogPage>)> on_page) {
  return std::make_unique<FollowerImpl>(loop, gate, std::move(log), settings, std::move(followers),
                                        std::move(on_page));
}

std::unique_ptr<LogReader::Follower> refused_follower(
    Loop& loop, Error why, std::function<void(Result<LogPage>)> on_page) {
  return std::make_unique<RefusedFollower>(loop, std::move(why), std::move(on_page));
}

}  // namespace muster
