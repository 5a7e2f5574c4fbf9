// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_reader.h"

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <utility>

#include "supervisor/browse/follower.h"
#include "supervisor/browse/page_work.h"

namespace muster {

namespace {

// Work of one or more pieces with one answer, which is posted by the piece's end.
class AskedWork final : public BrowseTask {
 public:
  // `piece` says whether the work is done; `on_done` may drop this.
  AskedWork(BrowseGate& gate, std::function<bool()> piece, std::function<void()> on_done) {
    auto done = std::make_shared<bool>(false);
    job_ = gate.add([piece = std::move(piece), done] { *done = piece(); },
                    [this, on_done = std::move(on_done), done] {
                      if (*done) return on_done();
                      job_->wake();
                    });
    job_->wake();
  }

 private:
  std::unique_ptr<BrowseJob> job_;
};

}  // namespace

struct LogReader::Impl {
  explicit Impl(Loop& the_loop) : loop(the_loop), gate(the_loop) {}

  Loop& loop;
  BrowseGate gate;
  // The logs that were read, last used first.
  std::list<std::shared_ptr<IndexedLog>> logs;
  // Counts the lines of the log that was read last, when nobody wants anything else.
  std::shared_ptr<IndexedLog> counted;
  std::unique_ptr<BrowseJob> counting;
  std::shared_ptr<size_t> followers = std::make_shared<size_t>(0);

  std::shared_ptr<IndexedLog> log(const std::string& path);
  void count_lines(std::shared_ptr<IndexedLog> log);
};

// Logs that somebody reads stay, so that all who do share what is known.
std::shared_ptr<IndexedLog> LogReader::Impl::log(const std::string& path) {
  auto found =
      std::find_if(logs.begin(), logs.end(), [&](const auto& log) { return log->path() == path; });
  if (found != logs.end()) {
    logs.splice(logs.begin(), logs, found);
    return logs.front();
  }
  size_t unused = 0;
  for (auto it = logs.begin(); it != logs.end();) {
    bool gone = it->use_count() == 1 && ++unused >= kMaxIndexes;
    it = gone ? logs.erase(it) : std::next(it);
  }
  logs.push_front(std::make_shared<IndexedLog>(path));
  return logs.front();
}

void LogReader::Impl::count_lines(std::shared_ptr<IndexedLog> log) {
  if (counting && counted == log) return;
  counted = std::move(log);
  auto done = std::make_shared<bool>(false);
  counting = gate.add(
      [log = counted, done] {
        auto bytes = log->open();
        int64_t budget = BrowseGate::kPiece;
        auto counted_all = bytes && *bytes ? log->count_all(**bytes, budget) : Result<bool>(true);
        *done = !counted_all || *counted_all;
      },
      [this, done] {
        if (!*done) return counting->wake();
        counting.reset();
      },
      BrowseGate::Urgency::kIdle);
  counting->wake();
}

LogReader::LogReader(Loop& loop) : impl_(std::make_shared<Impl>(loop)) {}
LogReader::~LogReader() = default;

BrowseGate& LogReader::gate() {
  return impl_->gate;
}

std::shared_ptr<IndexedLog> LogReader::log(const std::string& path) {
  return impl_->log(path);
}

std::unique_ptr<BrowseTask> LogReader::read(const std::string& path, LogQuery query,
                                            std::function<void(Result<LogPage>)> on_done) {
  auto log = impl_->log(path);
  auto work = std::make_shared<PageWork>(log, query);
  return std::make_unique<AskedWork>(
      impl_->gate, [work] { return work->run(); },
      [impl = std::weak_ptr<Impl>(impl_), work, log, on_done = std::move(on_done)] {
        Result<LogPage> page = work->take();
        auto alive = impl.lock();
        if (alive && page && page->exists && page->total_lines < 0) alive->count_lines(log);
        on_done(std::move(page));
      });
}

std::unique_ptr<BrowseTask> LogReader::read_bytes(const std::string& path, int64_t offset,
                                                  int64_t count,
                                                  std::function<void(Result<Bytes>)> on_done) {
  auto found = std::make_shared<Result<Bytes>>(Bytes{offset, "", 0});
  auto piece = [path, offset, count = std::clamp<int64_t>(count, 0, kMaxBytes), found] {
    auto log = LogBytes::open(path);
    if (!log) *found = log.error();
    if (!log || !*log) return true;
    auto bytes = (*log)->read(std::max<int64_t>(offset, 0), count);
    if (bytes) {
      *found = Bytes{bytes->offset, std::string(bytes->bytes), (*log)->size()};
    } else {
      *found = bytes.error();
    }
    return true;
  };
  return std::make_unique<AskedWork>(
      impl_->gate, piece, [found, on_done = std::move(on_done)] { on_done(std::move(*found)); });
}

std::unique_ptr<LogReader::Follower> LogReader::follow(
    const std::string& path, FollowSettings settings,
    std::function<void(Result<LogPage>)> on_page) {
  if (*impl_->followers >= kMaxFollowers) {
    return refused_follower(impl_->loop,
                            Error{EMFILE, "too many logs are being followed (the limit is " +
                                              std::to_string(kMaxFollowers) + ")"},
                            std::move(on_page));
  }
  return make_follower(impl_->loop, impl_->gate, impl_->log(path), settings, impl_->followers,
                       std::move(on_page));
}

}  // namespace muster
