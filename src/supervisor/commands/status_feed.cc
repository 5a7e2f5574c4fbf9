// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/status_feed.h"

#include <algorithm>
#include <utility>

namespace muster {

Result<std::unique_ptr<StatusFeed>> StatusFeed::open(Loop& loop, std::string run,
                                                     std::string target, Callbacks callbacks) {
  std::unique_ptr<StatusFeed> feed(
      new StatusFeed(loop, std::move(run), std::move(target), std::move(callbacks)));
  if (Result<void> connected = feed->connect(); !connected) return connected.error();
  return feed;
}

StatusFeed::StatusFeed(Loop& loop, std::string run, std::string target, Callbacks callbacks)
    : loop_(loop),
      run_(std::move(run)),
      target_(std::move(target)),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<StatusFeed*>(this)) {}

Result<void> StatusFeed::connect() {
  Result<std::unique_ptr<RunClient>> client = RunClient::open(loop_, run_);
  if (!client) return client.error();
  status_.reset();
  events_.reset();
  timer_.reset();
  client_ = std::move(*client);
  // What was the newest run at first stays the one that is shown.
  run_ = client_->handle();
  asking_ = false;
  listen();
  ask();
  return {};
}

// What an event says does not matter here: that there was one does.
void StatusFeed::listen() {
  events_ = client_->follow(
      "/api/v1/events?stream=1", "", [this](const EventStreamReader::Message&) { ask_soon(); },
      [this](const Result<void>& ended) {
        lost_ = ended ? Error{0, client_->name() + ": the connection was closed"} : ended.error();
        post(&StatusFeed::on_lost);
      });
}

void StatusFeed::ask_soon() {
  if (asking_) {
    again_ = true;
    return;
  }
  const auto since = std::chrono::duration_cast<Milliseconds>(Clock::now() - asked_);
  timer_ = Timer::start(loop_, std::max(Milliseconds(0), kMostOften - since), [this] { ask(); });
}

void StatusFeed::ask() {
  asking_ = true;
  again_ = false;
  asked_ = Clock::now();
  status_ = client_->get(target_, [this](Result<std::string> body) {
    answer_ = std::move(body);
    post(&StatusFeed::on_answer);
  });
}

void StatusFeed::on_answer() {
  asking_ = false;
  if (!answer_) {
    lost_ = answer_.error();
    return on_lost();
  }
  if (again_) {
    ask_soon();
  } else {
    timer_ = Timer::start(loop_, kBetween, [this] { ask(); });
  }
  callbacks_.on_status(*answer_);
}

void StatusFeed::on_lost() {
  status_.reset();
  events_.reset();
  asking_ = false;
  timer_ = Timer::start(loop_, kAskAgain, [this] {
    Result<void> connected = connect();
    if (connected) return;
    lost_ = connected.error();
    on_lost();
  });
  callbacks_.on_trouble(lost_);
}

void StatusFeed::post(void (StatusFeed::*what)()) {
  loop_.post([weak = std::weak_ptr<StatusFeed*>(self_), what] {
    if (auto self = weak.lock()) ((*self)->*what)();
  });
}

}  // namespace muster
