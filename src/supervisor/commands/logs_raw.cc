// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/logs_task.h"
#include "supervisor/commands/say.h"

namespace muster {

namespace {

class Raw : public LogsTask {
 public:
  Raw(LogsContext& context, std::vector<LogName> logs, OnLogsDone on_done)
      : context_(context),
        logs_(std::move(logs)),
        on_done_(std::move(on_done)),
        self_(std::make_shared<Raw*>(this)) {
    next_turn();
  }

 private:
  void next_turn() {
    context_.loop.post([weak = std::weak_ptr<Raw*>(self_)] {
      if (auto self = weak.lock()) (*self)->next();
    });
  }

  void next() {
    if (next_ == logs_.size()) {
      OnLogsDone on_done = std::move(on_done_);
      if (troubles_ == logs_.size() && troubles_ > 0) return on_done(last_error_);
      return on_done({});
    }
    call_ = context_.client.get_pieces(
        log_target(logs_[next_++]), [](std::string_view piece) { print(piece); },
        [this](const Result<void>& ended) {
          if (!ended) on_trouble(ended.error());
          next_turn();
        });
  }

  // A stream that has written nothing has no log: that is nothing to speak of.
  void on_trouble(const Error& error) {
    ++troubles_;
    last_error_ = error;
    if (error.code != kExitNoRun) say(log_title(logs_[next_ - 1]) + ": " + error.message);
  }

  LogsContext& context_;
  std::vector<LogName> logs_;
  OnLogsDone on_done_;
  size_t next_ = 0;
  size_t troubles_ = 0;
  Error last_error_;
  std::unique_ptr<HttpCall> call_;
  std::shared_ptr<Raw*> self_;
};

}  // namespace

std::unique_ptr<LogsTask> print_raw(LogsContext& context, std::vector<LogName> logs,
                                    OnLogsDone on_done) {
  return std::make_unique<Raw>(context, std::move(logs), std::move(on_done));
}

}  // namespace muster
