// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"

namespace muster {

// Passes lines on, at most kBurst in a window; what came beyond that is counted and said in one
// line at the window's end. So a port scanner cannot fill a console.
class TroubleLines {
 public:
  static constexpr int kBurst = 5;

  TroubleLines(Loop& loop, std::function<void(const std::string&)> out,
               Milliseconds window = Milliseconds(60'000), std::string subject = "store")
      : loop_(loop), out_(std::move(out)), window_(window), subject_(std::move(subject)) {}

  void say(const std::string& line) {
    if (said_ >= kBurst) {
      ++held_;
      return;
    }
    ++said_;
    if (!end_) {
      end_ = Timer::start(loop_, window_, [this] { window_ended(); });
      end_->unref();
    }
    out_(line);
  }

 private:
  void window_ended() {
    const int held = held_;
    end_.reset();
    said_ = held_ = 0;
    if (held > 0)
      out_(subject_ + ": " + std::to_string(held) + " more bad connections were closed");
  }

  Loop& loop_;
  std::function<void(const std::string&)> out_;
  const Milliseconds window_;
  const std::string subject_;  // whose lines they are
  Owned<Timer> end_;
  int said_ = 0;
  int held_ = 0;
};

}  // namespace muster
