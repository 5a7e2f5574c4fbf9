// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_log.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "loop/pool.h"
#include "loop/unique_fd.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/event_reader.h"

namespace muster {

namespace {

constexpr size_t kReadBlock = 64 * 1024;

// Returns 0 or an errno. `torn` says whether the file ends inside a line.
int write_all(int fd, std::string_view text, bool& torn) {
  while (!text.empty()) {
    ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
    torn = !text.empty();
  }
  return 0;
}

}  // namespace

// Shared by the owner and the batch that is being written. `fd` and `torn` belong to the pool's
// thread while `writing`, everything else to the loop.
struct EventLog::State : std::enable_shared_from_this<EventLog::State> {
  State(Loop& loop, std::string path, UniqueFd fd, std::function<void(const std::string&)> trouble)
      : loop(loop), path(std::move(path)), fd(std::move(fd)), on_trouble(std::move(trouble)) {}

  Loop& loop;
  std::string path;
  UniqueFd fd;
  bool torn = false;
  bool writing = false;
  bool failing = false;
  std::string pending;
  int64_t dropped = 0;
  std::function<void(const std::string&)> on_trouble;
  std::vector<std::function<void()>> waiting;  // for flush()

  void append(const Event& event) {
    bool last = std::holds_alternative<event::JobEnded>(event.body);
    if (pending.size() > kMaxPendingBytes && !last) {
      ++dropped;
      return;
    }
    pending += event_to_json(event);
    pending += '\n';
    if (!writing) write_pending();
  }

  void write_pending() {
    writing = true;
    auto batch = std::make_shared<std::string>(std::exchange(pending, {}));
    auto error = std::make_shared<int>(0);
    auto self = shared_from_this();
    run_in_pool(
        loop,
        [self, batch, error] {
          if (self->torn) batch->insert(batch->begin(), '\n');
          *error = write_all(self->fd.get(), *batch, self->torn);
        },
        [self, error] { self->on_written(*error); });
  }

  void on_written(int error) {
    writing = false;
    std::string trouble;
    if (error != 0 && !failing) trouble = errno_error(error, "write " + path).message;
    failing = error != 0;
    if (dropped > 0 && trouble.empty()) {
      trouble = path + ": " + std::to_string(std::exchange(dropped, 0)) +
                " events were dropped, the disk is too slow";
    }
    std::vector<std::function<void()>> done;
    if (pending.empty()) {
      done = std::exchange(waiting, {});
    } else {
      write_pending();
    }
    // Calling out comes last; the caller keeps this alive.
    auto tell = on_trouble;
    if (!trouble.empty() && tell) tell(trouble);
    for (auto& call : done)
      call();
  }
};

Result<std::unique_ptr<EventLog>> EventLog::open(
    Loop& loop, const std::string& path, std::function<void(const std::string&)> on_trouble) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return errno_error(errno, "open " + path);
  return std::unique_ptr<EventLog>(
      new EventLog(std::make_shared<State>(loop, path, std::move(fd), std::move(on_trouble))));
}

EventLog::EventLog(std::shared_ptr<State> state) : state_(std::move(state)) {}

EventLog::~EventLog() {
  state_->on_trouble = nullptr;
  state_->waiting.clear();
}

void EventLog::append(const Event& event) {
  state_->append(event);
}

void EventLog::flush(std::function<void()> on_done) {
  if (state_->writing) {
    state_->waiting.push_back(std::move(on_done));
  } else {
    state_->loop.post(std::move(on_done));
  }
}

Result<EventHistory> read_events(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "open " + path);
  EventReader reader;
  EventHistory history;
  std::string block(kReadBlock, '\0');
  for (;;) {
    ssize_t count = ::read(fd.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path);
    if (count == 0) break;
    std::vector<Event> events =
        reader.take(std::string_view(block).substr(0, static_cast<size_t>(count)));
    std::move(events.begin(), events.end(), std::back_inserter(history.events));
  }
  history.skipped_lines = reader.damaged() + reader.unknown();
  history.cut_at_end = reader.inside_line();
  return history;
}

}  // namespace muster
