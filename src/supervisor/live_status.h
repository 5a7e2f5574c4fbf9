// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "supervisor/live_source.h"
#include "supervisor/status/status_server.h"

namespace muster {

// The HTTP side of a running job: what it shows, the server that shows it, and where others find
// that. Owned by the supervisor's main, which lets it go before the parts that it reads.
class LiveStatus {
 public:
  // Without --http off. An address that cannot be had is an error if it was asked for; otherwise
  // there is no page (url() is "") and `problem()` says why.
  static Result<std::unique_ptr<LiveStatus>> start(Loop& loop, LiveSource::Parts parts);
  ~LiveStatus();

  // For the recorder's observers. A line for the console when there is news of where the page is.
  std::optional<std::string> observe(const Event& event);

  // A request of the coordinator's muster about this node.
  void handle_forwarded(std::unique_ptr<HttpExchange> exchange);

  // The job is over: calls back, from the loop, when whoever watches has the rest (StatusServer).
  void finish(std::function<void()> on_done);

  // What is measured of workers: here, for the coordinator elsewhere; there, for us.
  std::vector<RankSample> own_samples() { return source_.own_samples(); }
  void take_samples(int attempt, const std::vector<RankSample>& samples) {
    source_.take_samples(attempt, samples);
  }
  // Of all ranks, where the coordinator is here.
  std::vector<RankSample> known_samples() { return source_.known_samples(); }
  void look_again() { source_.look_again(); }
  std::vector<StoreWaiter> store_waiters() const { return source_.store_waiters(); }

  std::optional<GpuReading> gpu_of(int local_rank) { return source_.gpu_of(local_rank); }

 private:
  LiveStatus(Loop& loop, LiveSource::Parts parts);
  Result<void> listen(const HttpPlace& place);
  std::optional<std::string> announce(const Event& event);

  Loop& loop_;
  const LaunchPlan& plan_;
  LiveSource source_;
  std::unique_ptr<StatusServer> server_;
  Owned<Timer> timer_;
  std::string problem_;      // why there is none
  bool told_ = false;        // the console knows an address
  bool told_whole_ = false;  // and that the whole job is seen there
};

}  // namespace muster
