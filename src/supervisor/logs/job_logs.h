// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/cli/plan.h"
#include "supervisor/job/event.h"
#include "supervisor/logs/last_lines.h"
#include "supervisor/workers/spawn.h"

namespace muster {

// The run's folder and every stream of every worker: pipes to files first, then lines to the
// console with prefixes, folding and filters. Owned by the supervisor's main, lives for the whole
// run. Knows no process: it hands out descriptors and reports end of file.
class JobLogs {
 public:
  struct Callbacks {
    std::function<void(int local_rank, Stream stream)> on_first_output;
    // After worker_ended(): both streams of the worker reached end of file (or the bound passed)
    // and every byte is in its file and was offered to the console.
    std::function<void(int local_rank)> on_drained;
    std::function<void(const std::string& message)> on_trouble;  // disk full, file unwritable
    // As on_drained, by itself: nobody holds the worker's streams any more. Also before it is known
    // that the worker has ended; not where closed() has been true from the start.
    std::function<void(int local_rank)> on_closed{};
  };

  // muster's own descriptors; a test brings others.
  struct Consoles {
    int in = 0;
    int out = 1;
    int err = 2;
  };

  // Makes the run's folder (or none for --log-dir /dev/null), prunes old runs of the default
  // folder, points `latest` here. Errors name the path. From here on SIGPIPE is ignored.
  static Result<std::unique_ptr<JobLogs>> open(Loop& loop, const LaunchPlan& plan,
                                               Callbacks callbacks, Consoles consoles);
  static Result<std::unique_ptr<JobLogs>> open(Loop& loop, const LaunchPlan& plan,
                                               Callbacks callbacks) {
    return open(loop, plan, std::move(callbacks), Consoles());
  }
  virtual ~JobLogs() = default;

  // Absolute path of the run's folder, empty without logs.
  virtual const std::string& run_dir() const = 0;

  // Makes attempt_<n>/<local rank>/ for all workers. Never touches an earlier attempt. `first_rank`
  // is the global rank of local rank 0 in it.
  virtual Result<void> begin_attempt(int attempt, int first_rank) = 0;

  // "" without logs.
  virtual std::string error_file(int local_rank) const = 0;
  // "" if there is none (yet: a stream that nobody asked for gets its file with its first bytes).
  virtual std::string log_file(int local_rank, Stream stream) const = 0;

  // The worker's stdin, stdout and stderr for spawn(). Descriptors stay open until
  // worker_started() or worker_not_started(). If stdin is of kind kFd it is a pseudo-terminal that
  // is to become the controlling terminal.
  virtual Result<std::array<StdioSource, 3>> open_worker(int local_rank) = 0;
  virtual void worker_started(int local_rank, int pid) = 0;
  virtual void worker_not_started(int local_rank) = 0;

  // The main process is dead: drain its pipes, for at most `bound` if some descendant keeps them.
  virtual void worker_ended(int local_rank, Milliseconds bound) = 0;

  // Whether nothing more can come of the worker through us.
  virtual bool closed(int local_rank) const = 0;

  // The last bytes (at most 64 KiB) that the worker wrote through us, for the report. Of a stream
  // that it writes into its file itself there are none: whoever wants them reads the file.
  virtual std::string tail(int local_rank, Stream stream) const = 0;

  // The last lines of both streams, `count` at most, in the order in which they came through us.
  virtual std::vector<StreamLine> last_lines(int local_rank, size_t count) const = 0;

  // When a stream last brought something through us, and the end of that, `count` bytes at most.
  // Of a stream that the worker writes into its file itself nothing is known here.
  struct Recent {
    Clock::time_point at{};  // the epoch: nothing yet
    std::string tail;
  };
  virtual Recent recent(int local_rank, Stream stream, size_t count) const = 0;

  // muster's own lines on stderr, kept whole and in order among the workers' lines.
  virtual void say(std::string_view line) = 0;

  // Calls back when consoles are flushed, or when a stuck one has made no progress for `patience`.
  virtual void finish(Milliseconds patience, std::function<void()> on_done) = 0;
};

}  // namespace muster
