// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/timer.h"
#include "supervisor/logs/console.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/logs/last_lines.h"
#include "supervisor/logs/line_filter.h"
#include "supervisor/logs/routes.h"
#include "supervisor/logs/stdin_relay.h"
#include "supervisor/logs/stream_reader.h"
#include "supervisor/logs/tail_ring.h"

namespace muster {

// What the streams of all workers share. Owned by JobLogs, which outlives its streams.
struct StreamWorld {
  Loop& loop;
  const LaunchPlan& plan;
  JobLogs::Consoles descriptors;
  ChunkPool chunks;
  std::shared_ptr<PoolGate> gate;
  std::shared_ptr<Console> out, err;                   // one and the same if both go to one place
  std::unique_ptr<FilterFile> out_filter, err_filter;  // null without such a filter
  JobLogs::Callbacks callbacks;
  bool paused = false;  // some stream waits until a sink has room

  Console& console(Stream stream) { return stream == Stream::kStdout ? *out : *err; }
  FilterFile* filter(Stream stream) {
    return stream == Stream::kStdout ? out_filter.get() : err_filter.get();
  }
};

// Both streams of one worker in one attempt: from the descriptors it starts with to the last byte.
// Owned by JobLogs.
class WorkerStreams {
 public:
  struct Identity {
    int rank = 0;
    int local_rank = 0;
    int attempt = 0;
    std::string dir;  // attempt_<n>/<local rank>, empty without files
  };

  WorkerStreams(StreamWorld& world, Identity identity, const WorkerRoutes& routes);
  ~WorkerStreams();

  // stdin, stdout and stderr of the worker.
  Result<std::array<StdioSource, 3>> open();
  void started(int pid);
  void not_started();
  void ended(Milliseconds bound);
  void resume();
  bool closed() const { return streams_[0].done() && streams_[1].done(); }
  std::string tail(Stream stream) const;
  JobLogs::Recent recent(Stream stream, size_t count) const;
  std::vector<StreamLine> last_lines(size_t count) const;
  std::string log_file(Stream stream) const;

 private:
  struct One {
    Stream stream = Stream::kStdout;
    StreamRoute route;
    std::string path;        // of its file, empty if there is none
    UniqueFd ours, workers;  // the pipe's ends, between open() and started()
    std::shared_ptr<LogFile> file;
    std::unique_ptr<StreamReader> reader;
    Console::SourceId source = 0;
    std::unique_ptr<LineFilter> filter;
    TailRing tail;
    size_t on_their_way = 0;  // bytes that were read and are not in the tail yet
    Clock::time_point last_bytes{};
    int64_t lost = 0;
    int error = 0;

    bool done() const { return !reader || reader->ended(); }
  };

  One& one(Stream stream) { return streams_[stream == Stream::kStdout ? 0 : 1]; }
  const One& one(Stream stream) const { return streams_[stream == Stream::kStdout ? 0 : 1]; }
  Result<StdioSource> open_one(One& one);
  Result<void> open_pipe(One& one);
  StdioSource open_stdin();
  void start_one(One& one, int pid);
  bool may_deliver(const One& one);
  bool keeps_order() const { return world_.out == world_.err; }
  void on_bytes(One& one, std::string_view bytes);
  void on_file_error(One& one, const LogFile::Written& written);
  void on_end(One& one);
  bool may_go_on(const One& one);
  bool sinks_have_room(const One& one);
  Prefix prefix_for(const One& one, int pid) const;
  void check_drained();
  void report_drained();
  void tell(const std::function<void(int local_rank)>& whom);

  StreamWorld& world_;
  Identity identity_;
  std::array<One, 2> streams_;
  // Of which stream the chunks came that are on their way, if both go to one console: there they
  // keep the order in which they were read, whichever file is written first.
  std::deque<Stream> order_;
  ArrivalOrder arrived_;       // as they were read
  bool relay_wanted_ = false;  // stdin is stdout's pseudo-terminal
  std::unique_ptr<StdinRelay> relay_;
  bool ended_ = false;
  bool drained_ = false;
  Owned<Timer> bound_;
  std::shared_ptr<WorkerStreams*> self_;  // posted tasks that run after our end find this gone
};

}  // namespace muster
