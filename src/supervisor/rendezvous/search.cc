// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/search.h"

#include <algorithm>
#include <utility>

#include "supervisor/rendezvous/awaited.h"

namespace muster {

namespace {

constexpr Milliseconds kFirstRetry{50};
constexpr Milliseconds kLastRetry{1'000};
// The usual small wait, until all nodes are up, is not worth a line.
constexpr Milliseconds kFirstLine{1'000};
constexpr Milliseconds kLineEvery{5'000};

Milliseconds until(Clock::time_point time) {
  return std::max(Milliseconds(0), std::chrono::duration_cast<Milliseconds>(time - Clock::now()));
}

}  // namespace

std::string host_and_port(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Search::Search(Loop& loop, Discovery& discovery, Settings settings,
               Approach::Introduction introduction, Callbacks callbacks)
    : loop_(loop),
      discovery_(discovery),
      settings_(std::move(settings)),
      introduction_(std::move(introduction)),
      callbacks_(std::move(callbacks)),
      deadline_(Clock::now() + settings_.join_timeout),
      backoff_(kFirstRetry),
      where_(settings_.where) {
  deadline_timer_ = Timer::start(loop_, settings_.join_timeout, [this] {
    give_up("no coordinator at " + where_ + " within " + countdown_text(settings_.join_timeout) +
                (trouble_.empty() ? "" : ": " + trouble_),
            "rendezvous_timeout");
  });
  say_from_now_on(kFirstLine);
  look();
}

void Search::look() {
  approach_.reset();
  discovery_.find();
}

void Search::at_step(const std::string& step) {
  trouble_ = step;
}

void Search::failed(const Error& error) {
  give_up(error.message);
}

void Search::found(Discovery::Found found) {
  if (found.store) {
    auto on_hosting = std::move(callbacks_.on_hosting);
    return on_hosting(std::move(found));
  }
  if (!found.host.empty()) where_ = host_and_port(found.host, found.port);
  approach_ = std::make_unique<Approach>(
      loop_, Approach::Target{std::move(found.addresses), found.port}, introduction_,
      settings_.patience,
      Approach::Callbacks{[this](Approach::Joined joined) {
                            if (said_anything_) {
                              callbacks_.on_say("the coordinator at " + where_ + " is there");
                            }
                            auto on_joined = std::move(callbacks_.on_joined);
                            on_joined(std::move(joined), std::string(where_));
                          },
                          [this](const Approach::Failure& failure) { on_obstacle(failure); }});
}

void Search::on_obstacle(const Approach::Failure& failure) {
  const std::string why = failure.why;
  if (failure.obstacle == Approach::Obstacle::kFinal) {
    return give_up("the coordinator at " + where_ + " refuses this node: " + why);
  }
  trouble_ = why;
  retry_timer_ = Timer::start(loop_, backoff_, [this] { look(); });
  backoff_ = std::min(backoff_ * 2, kLastRetry);
  // Waiting alone will hardly help against these.
  if (failure.obstacle >= Approach::Obstacle::kHungUp && said_ != trouble_) {
    say();
    say_from_now_on(kLineEvery);
  }
}

void Search::say() {
  said_anything_ = true;
  said_ = trouble_;
  callbacks_.on_say("waiting for the coordinator at " + where_ +
                    (trouble_.empty() ? "" : ": " + trouble_) + "; " +
                    countdown_text(until(deadline_)) + " left");
}

void Search::say_from_now_on(Milliseconds first) {
  say_timer_ = Timer::start(loop_, first, [this] {
    say_from_now_on(kLineEvery);
    say();
  });
}

void Search::give_up(const std::string& why, const std::string& kind) {
  auto on_given_up = std::move(callbacks_.on_given_up);
  on_given_up(std::string(why), std::string(kind));
}

}  // namespace muster
