// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "loop/fd_watch.h"
#include "loop/signal.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/keys.h"
#include "supervisor/commands/say.h"
#include "supervisor/commands/screen.h"
#include "supervisor/commands/status_feed.h"
#include "supervisor/commands/status_text.h"
#include "supervisor/commands/terminal_text.h"

namespace muster {

namespace {

constexpr int kExitInterrupted = 128 + SIGINT;

std::string clock_now() {
  const time_t now = ::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

std::string target_of(const CommandOptions& options) {
  return options.ranks.empty() ? "/status" : "/status?ranks=" + options.ranks;
}

// Where stdout is no terminal: a line for each change, until the job is over.
class PlainLines {
 public:
  explicit PlainLines(const CommandOptions& options) : options_(options) {}

  int run() {
    StatusFeed::Callbacks callbacks;
    callbacks.on_status = [this](const std::string& json) { on_status(json); };
    callbacks.on_trouble = [](const Error& error) { say("status: " + error.message); };
    auto feed = StatusFeed::open(loop_, options_.run, target_of(options_), std::move(callbacks));
    if (!feed) return fail("status", feed.error());
    feed_ = std::move(*feed);
    loop_.run();
    feed_.reset();
    return code_;
  }

 private:
  void on_status(const std::string& json) {
    Result<StatusText> text = status_text(json, {});
    if (!text) return;
    if (text->change != shown_) {
      shown_ = text->change;
      print(clock_now() + " " + text->headline + "\n");
    }
    code_ = text->bad ? kExitBad : kExitFine;
    if (text->over) loop_.stop();
  }

  const CommandOptions& options_;
  Loop loop_;
  std::unique_ptr<StatusFeed> feed_;
  std::string shown_;
  int code_ = kExitFine;
};

// A page that is drawn anew whenever something changed.
class LivePage {
 public:
  explicit LivePage(const CommandOptions& options) : options_(options) {}

  int run() {
    StatusFeed::Callbacks callbacks;
    callbacks.on_status = [this](const std::string& json) { on_status(json); };
    callbacks.on_trouble = [this](const Error& error) {
      trouble_ = error.message;
      draw();
    };
    auto feed = StatusFeed::open(loop_, options_.run, target_of(options_), std::move(callbacks));
    if (!feed) return fail("status", feed.error());
    feed_ = std::move(*feed);
    watch_signals();
    {
      Screen screen;
      screen_ = &screen;
      watch_keys();
      draw();
      loop_.run();
      screen_ = nullptr;
    }
    keys_.reset();
    signals_.clear();
    feed_.reset();
    return code_;
  }

 private:
  void watch_signals() {
    auto end_with = [this](int code) {
      return [this, code] {
        code_ = code;
        loop_.stop();
      };
    };
    signals_.push_back(SignalWatch::start(loop_, SIGINT, end_with(kExitInterrupted)));
    signals_.push_back(SignalWatch::start(loop_, SIGTERM, end_with(128 + SIGTERM)));
    signals_.push_back(SignalWatch::start(loop_, SIGHUP, end_with(128 + SIGHUP)));
    signals_.push_back(SignalWatch::start(loop_, SIGQUIT, end_with(128 + SIGQUIT)));
    signals_.push_back(SignalWatch::start(loop_, SIGWINCH, [this] {
      screen_->measure();
      draw();
    }));
    signals_.push_back(SignalWatch::start(loop_, SIGTSTP, [this] {
      screen_->leave();
      ::kill(::getpid(), SIGSTOP);
      // Going on from here: somebody continued us.
      screen_->enter();
      draw();
    }));
  }

  void watch_keys() {
    if (::isatty(STDIN_FILENO) != 1) return;
    auto keys = FdWatch::start(loop_, STDIN_FILENO, FdWatch::kReadable, [this](int) { on_keys(); });
    if (keys) keys_ = std::move(*keys);
  }

  void on_keys() {
    char bytes[64];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) {
      keys_.reset();  // the terminal is gone; its SIGHUP says the rest
      return;
    }
    for (Key key : keys_in({bytes, static_cast<size_t>(count)})) {
      if (key == Key::kQuit) return loop_.stop();
      scroll(key);
    }
    draw();
  }

  void scroll(Key key) {
    const auto page = static_cast<size_t>(std::max(1, screen_->rows() - 2));
    const size_t last = lines_.size() > page ? lines_.size() - page : 0;
    switch (key) {
      case Key::kUp:
        first_ -= std::min<size_t>(first_, 1);
        break;
      case Key::kDown:
        ++first_;
        break;
      case Key::kPageUp:
        first_ -= std::min(first_, page);
        break;
      case Key::kPageDown:
        first_ += page;
        break;
      case Key::kHome:
        first_ = 0;
        break;
      case Key::kEnd:
        first_ = last;
        break;
      case Key::kQuit:
        break;
    }
    first_ = std::min(first_, last);
  }

  void on_status(const std::string& json) {
    Result<StatusText> text = status_text(json, {wants_colour(STDOUT_FILENO), true});
    trouble_ = text ? "" : text.error().message;
    if (text) {
      lines_ = std::move(text->lines);
      code_ = text->bad ? kExitBad : kExitFine;
    }
    draw();
  }

  void draw() {
    if (screen_ == nullptr) return;
    const auto room = static_cast<size_t>(std::max(1, screen_->rows() - 1));
    first_ = std::min(first_, lines_.size() > room ? lines_.size() - room : 0);
    std::string foot = clock_now() + "  q quits";
    if (lines_.size() > room) {
      foot += "  ↑ ↓ move (" + std::to_string(first_ + 1) + "-" +
              std::to_string(std::min(first_ + room, lines_.size())) + " of " +
              std::to_string(lines_.size()) + ")";
    }
    if (!trouble_.empty()) foot = clock_now() + "  not connected, trying again: " + trouble_;
    screen_->show(lines_, first_, foot);
  }

  const CommandOptions& options_;
  Loop loop_;
  std::unique_ptr<StatusFeed> feed_;
  std::vector<Owned<SignalWatch>> signals_;
  Owned<FdWatch> keys_;
  Screen* screen_ = nullptr;  // ours in run()
  std::vector<std::string> lines_;
  size_t first_ = 0;
  std::string trouble_;
  int code_ = kExitFine;
};

}  // namespace

int run_watch(const CommandOptions& options) {
  if (::isatty(STDOUT_FILENO) != 1) return PlainLines(options).run();
  return LivePage(options).run();
}

}  // namespace muster
