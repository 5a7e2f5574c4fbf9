// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/approach.h"
#include "supervisor/rendezvous/discovery.h"

namespace muster {

// Looks for the coordinator until it is found, or is us, or the time is over: asks the Discovery,
// approaches what it names, and begins again. Says every few seconds what stands in the way. Owned
// by Rendezvous, which forwards to it what the Discovery calls back.
class Search {
 public:
  struct Settings {
    std::string where;  // the meeting point as the user knows it
    Milliseconds join_timeout{600'000};
    Milliseconds patience{5'000};  // for one address
  };
  // From the loop; but for on_say one of them, once. It may be dropped in it.
  struct Callbacks {
    std::function<void(Discovery::Found)> on_hosting;
    std::function<void(Approach::Joined, const std::string& where)> on_joined;
    // `kind` is event::JobEnded's, "" if it has none.
    std::function<void(const std::string& why, const std::string& kind)> on_given_up;
    std::function<void(const std::string& line)> on_say;
  };

  Search(Loop& loop, Discovery& discovery, Settings settings, Approach::Introduction introduction,
         Callbacks callbacks);

  void found(Discovery::Found found);
  void at_step(const std::string& step);
  void failed(const Error& error);

 private:
  void look();
  void on_obstacle(const Approach::Failure& failure);
  void say();
  void say_from_now_on(Milliseconds first);
  void give_up(const std::string& why, const std::string& kind = "");

  Loop& loop_;
  Discovery& discovery_;  // Rendezvous's, which drops this first
  const Settings settings_;
  const Approach::Introduction introduction_;
  Callbacks callbacks_;
  const Clock::time_point deadline_;
  Owned<Timer> deadline_timer_;
  Owned<Timer> say_timer_;
  Owned<Timer> retry_timer_;
  std::unique_ptr<Approach> approach_;
  Milliseconds backoff_;
  std::string where_;
  std::string trouble_;  // what stands in the way
  std::string said_;     // the trouble that was said last
  bool said_anything_ = false;
};

// "node-a:29400", "[::1]:29400".
std::string host_and_port(const std::string& host, int port);

}  // namespace muster
