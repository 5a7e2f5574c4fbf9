// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/search.h"

namespace muster {

namespace {

class GateSearch final : public LogSearch {
 public:
  GateSearch(BrowseGate& gate, SearchWork::Settings settings, OnFound on_found)
      : work_(std::make_shared<Work>(std::move(settings))),
        on_found_(std::make_shared<OnFound>(std::move(on_found))) {
    job_ = gate.add([work = work_] { work->done = work->search.run(); }, [this] { tell(); });
    job_->wake();
  }

  void set_paused(bool paused) override {
    paused_ = paused;
    if (paused_ || running_ || finished_) return;
    running_ = true;
    job_->wake();
  }

 private:
  // Touched by the pool while a piece runs, by the loop in between.
  struct Work {
    explicit Work(SearchWork::Settings settings) : search(std::move(settings)) {}
    SearchWork search;
    bool done = false;
  };

  void tell() {
    running_ = false;
    State state;
    const SearchWork& search = work_->search;
    state.hits = search.hits();
    state.bytes = search.bytes();
    state.total_bytes = search.total_bytes();
    state.done = finished_ = work_->done;
    state.truncated = search.truncated();
    if (state.done) state.troubles = search.troubles();
    std::vector<SearchHit> hits = work_->search.take_hits();
    const std::shared_ptr<OnFound> on_found = on_found_;
    const std::weak_ptr<int> self = alive_;
    (*on_found)(std::move(hits), state);
    if (!self.expired() && !paused_) set_paused(false);
  }

  const std::shared_ptr<Work> work_;
  const std::shared_ptr<OnFound> on_found_;
  std::unique_ptr<BrowseJob> job_;
  bool running_ = true;
  bool paused_ = false;
  bool finished_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<LogSearch> LogSearch::start(BrowseGate& gate, SearchWork::Settings settings,
                                            OnFound on_found) {
  return std::make_unique<GateSearch>(gate, std::move(settings), std::move(on_found));
}

}  // namespace muster
