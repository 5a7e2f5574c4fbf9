// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/http_client.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "supervisor/commands/run_client.h"

namespace muster {

// /status of a run, again and again: at each of its events, but at most kMostOften, and now and
// then between them. When the run's muster goes away it goes on with what is left in its folder.
class StatusFeed {
 public:
  static constexpr Milliseconds kMostOften{250};
  static constexpr Milliseconds kBetween{1'000};
  static constexpr Milliseconds kAskAgain{1'000};

  struct Callbacks {
    std::function<void(const std::string& json)> on_status;
    // It cannot be asked now, and is asked again.
    std::function<void(const Error& error)> on_trouble;
  };

  // `run` as the user gave it. The error's code is what the command exits with.
  static Result<std::unique_ptr<StatusFeed>> open(Loop& loop, std::string run, std::string target,
                                                  Callbacks callbacks);

  const std::string& name() const { return client_->name(); }

 private:
  StatusFeed(Loop& loop, std::string run, std::string target, Callbacks callbacks);
  Result<void> connect();
  void listen();
  void ask_soon();
  void ask();
  void on_answer();
  void on_lost();

  // Runs in a turn of its own, so that it may drop the call that it comes from.
  void post(void (StatusFeed::*what)());

  Loop& loop_;
  std::string run_;
  std::string target_;
  Callbacks callbacks_;
  std::unique_ptr<RunClient> client_;
  std::unique_ptr<HttpCall> events_;
  std::unique_ptr<HttpCall> status_;
  Owned<Timer> timer_;
  Clock::time_point asked_;
  bool asking_ = false;
  bool again_ = false;  // something happened since it was asked
  Result<std::string> answer_ = std::string();
  Error lost_;
  std::shared_ptr<StatusFeed*> self_;
};

}  // namespace muster
