// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "loop/timer.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/json_get.h"
#include "supervisor/commands/logs_task.h"
#include "supervisor/commands/say.h"
#include "supervisor/commands/terminal_text.h"

namespace muster {

namespace {

using Json = nlohmann::json;

constexpr Milliseconds kAskAgain{300};
constexpr int kMaxTries = 20;           // of a run that does not answer any more
constexpr size_t kRanksOfStream = 250;  // a follow stream of the API takes 512 logs
constexpr int64_t kFollowTail = 10;
constexpr const char* kEverything = "time=1";

class LogsCommand {
 public:
  LogsCommand(const CommandOptions& options, LineFilter filter)
      : options_(options), filter_(std::move(filter)), run_(options.run) {}

  int run() {
    if (Result<void> opened = open(); !opened) return fail("logs", opened.error());
    ask_attempts();
    loop_.run();
    task_.reset();
    call_.reset();
    timer_.reset();
    return code_;
  }

 private:
  Result<void> open() {
    Result<std::unique_ptr<RunClient>> client = RunClient::open(loop_, run_);
    if (!client) return client.error();
    task_.reset();
    call_.reset();
    context_.reset();
    client_ = std::move(*client);
    // What was the newest run at first stays the one that is shown.
    run_ = client_->handle();
    LinePrinter::Settings settings;
    settings.json = options_.json;
    settings.prefix = prefix_;
    settings.timestamps = options_.timestamps;
    settings.terminal = ::isatty(STDOUT_FILENO) == 1;
    settings.colour = wants_colour(STDOUT_FILENO);
    context_.emplace(LogsContext{loop_, options_, *client_, LinePrinter(settings), filter_});
    return {};
  }

  void finish(int code) {
    code_ = code;
    loop_.stop();
  }

  void give_up(const Error& error) { finish(fail("logs", error)); }

  // `then` runs in a turn of its own, so that it may drop the call.
  void ask(const std::string& target, std::function<void(const Json& answer)> then) {
    call_ = client_->get(target, [this, then = std::move(then)](Result<std::string> body) {
      loop_.post([this, then, body = std::move(body)] {
        if (!body) return following() ? try_again(body.error()) : give_up(body.error());
        const Json json = Json::parse(*body, nullptr, false);
        then(json);
      });
    });
  }

  void later(std::function<void()> then) {
    timer_ = Timer::start(loop_, kAskAgain, [then = std::move(then)] {
      // A copy: the timer is dropped by the next one.
      auto next = then;
      next();
    });
  }

  bool following() const { return places_.attempt >= 0 && options_.follow; }

  void ask_attempts() {
    ask("/api/v1/attempts", [this](const Json& answer) {
      std::vector<int> attempts;
      for (const Json& attempt : json_part(answer, "attempts"))
        attempts.push_back(json_get(attempt, "attempt", 0));
      std::sort(attempts.begin(), attempts.end());
      on_attempts(attempts);
    });
  }

  void on_attempts(const std::vector<int>& attempts) {
    if (attempts.empty()) return wait_for_attempt();
    const int wanted = options_.attempt.value_or(attempts.back());
    if (!std::binary_search(attempts.begin(), attempts.end(), wanted)) {
      return give_up({kExitNoRun, "there is no attempt " + std::to_string(wanted) + "; there are " +
                                      format_ranges(attempts)});
    }
    attempts_ = options_.all_attempts ? attempts : std::vector{wanted};
    several_ = attempts_.size() > 1;
    if (!options_.grep.empty() && !options_.follow) {
      prefix_from({});
      task_ = print_matches(*context_, options_.all_attempts ? "" : std::to_string(wanted), &found_,
                            [this](const Result<void>& done) {
                              if (!done) return give_up(done.error());
                              finish(found_ > 0 ? kExitFine : kExitBad);
                            });
      return;
    }
    next_attempt();
  }

  void wait_for_attempt() {
    if (!options_.follow) {
      return give_up({kExitNoRun, "its workers have not been started, so there are no logs yet"});
    }
    ask("/api/v1/job", [this](const Json& job) {
      if (!json_get(job, "live", false) || json_text(job, "phase") == "ended") {
        return give_up({kExitNoRun, "the run ended before its workers were started"});
      }
      later([this] { ask_attempts(); });
    });
  }

  void next_attempt() {
    if (attempts_.empty()) return finish(failed_ ? kExitNoAnswer : kExitFine);
    const int attempt = attempts_.front();
    attempts_.erase(attempts_.begin());
    if (several_) say("attempt " + std::to_string(attempt));
    begin(attempt, start_text());
  }

  std::string start_text() const {
    if (options_.since_us) return "time=" + std::to_string(*options_.since_us);
    if (options_.tail_all) return kEverything;
    return "tail=" + std::to_string(options_.tail.value_or(kFollowTail));
  }

  void begin(int attempt, const std::string& start) {
    std::string target = "/api/v1/ranks?attempt=" + std::to_string(attempt);
    if (!options_.ranks.empty()) target += "&ranks=" + options_.ranks;
    ask(target, [this, attempt, start](const Json& answer) {
      std::vector<int> ranks;
      for (const Json& rank : json_part(answer, "ranks"))
        ranks.push_back(json_get(rank, "rank", 0));
      if (ranks.empty()) {
        return give_up({kExitNoRun, "there is no such rank in attempt " + std::to_string(attempt)});
      }
      prefix_from(ranks);
      options_.follow ? follow(attempt, ranks, start) : print_all(attempt, ranks);
    });
  }

  // As on the console: one worker alone needs no name.
  void prefix_from(const std::vector<int>& ranks) {
    prefix_ = ranks.size() != 1;
    context_->printer.set_prefix(prefix_);
  }

  void print_all(int attempt, const std::vector<int>& ranks) {
    std::vector<LogName> logs;
    for (int rank : ranks) {
      for (const char* stream : {"stdout", "stderr"}) {
        const bool wanted = options_.streams.empty() || options_.streams == stream;
        if (wanted) logs.push_back({attempt, rank, stream});
      }
    }
    auto print = options_.raw ? print_raw : print_history;
    task_ = print(*context_, std::move(logs), [this](const Result<void>& done) {
      if (!done) {
        fail("logs", done.error());
        failed_ = true;
      }
      loop_.post([this] { next_attempt(); });
    });
  }

  void follow(int attempt, const std::vector<int>& ranks, const std::string& start) {
    if (places_.attempt != attempt) {
      places_ = {attempt, {}};
      for (size_t at = 0; at < ranks.size(); at += kRanksOfStream) {
        const size_t end = std::min(at + kRanksOfStream, ranks.size());
        places_.streams.emplace_back(format_ranges({ranks.begin() + static_cast<ptrdiff_t>(at),
                                                    ranks.begin() + static_cast<ptrdiff_t>(end)}),
                                     "");
      }
    }
    start_ = start;
    shown_ = false;
    task_ = print_following(*context_, places_, start, [this](const Result<void>& done) {
      loop_.post([this, done] {
        if (!done) return try_again(done.error());
        tries_ = 0;
        shown_ = true;
        ask_next();
      });
    });
  }

  // All of an attempt was shown: is there another?
  void ask_next() {
    ask("/api/v1/job", [this](const Json& job) {
      tries_ = 0;
      const int attempt = json_get(job, "attempt", -1);
      if (attempt > places_.attempt && !options_.attempt) {
        say("attempt " + std::to_string(attempt));
        return begin(attempt, kEverything);
      }
      const bool over = !json_get(job, "live", false) || json_text(job, "phase") == "ended";
      if (over || options_.attempt) return finish(kExitFine);
      later([this] { ask_next(); });
    });
  }

  // The run's muster is gone, or was stopped for a moment. What it left in its folder goes on from
  // the same place.
  void try_again(const Error& error) {
    if (++tries_ > kMaxTries) return give_up(error);
    later([this] {
      if (Result<void> opened = open(); !opened) return give_up(opened.error());
      if (shown_) return ask_next();
      begin(places_.attempt, start_);
    });
  }

  const CommandOptions& options_;
  LineFilter filter_;
  std::string run_;
  Loop loop_;
  std::unique_ptr<RunClient> client_;
  std::optional<LogsContext> context_;
  std::unique_ptr<HttpCall> call_;
  std::unique_ptr<LogsTask> task_;
  Owned<Timer> timer_;
  std::vector<int> attempts_;  // still to be shown
  FollowPlaces places_{-1, {}};
  std::string start_;
  bool shown_ = false;  // all of the attempt that is followed
  int64_t found_ = 0;
  int tries_ = 0;
  bool prefix_ = true;
  bool several_ = false;
  bool failed_ = false;
  int code_ = kExitFine;
};

}  // namespace

std::string log_target(const LogName& log) {
  return "/api/v1/logs/" + std::to_string(log.attempt) + "/" + std::to_string(log.rank) + "/" +
         log.stream;
}

std::string log_title(const LogName& log) {
  return "rank " + std::to_string(log.rank) + " " + log.stream;
}

int run_logs(const CommandOptions& options) {
  Result<LineFilter> filter = LineFilter::make(options);
  if (!filter) {
    say("logs: " + filter.error().message);
    return 2;
  }
  return LogsCommand(options, std::move(*filter)).run();
}

}  // namespace muster
