// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/archive.h"

namespace muster {

namespace {

class GateArchive final : public LogArchive {
 public:
  GateArchive(BrowseGate& gate, std::vector<ArchiveEntry> entries, OnPacked on_packed)
      : work_(std::make_shared<Work>(std::move(entries))),
        on_packed_(std::make_shared<OnPacked>(std::move(on_packed))) {
    job_ = gate.add([work = work_] { work->done = work->archive.run(); }, [this] { tell(); });
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
    explicit Work(std::vector<ArchiveEntry> entries) : archive(std::move(entries)) {}
    ArchiveWork archive;
    bool done = false;
  };

  void tell() {
    running_ = false;
    State state;
    state.done = finished_ = work_->done;
    if (state.done) state.troubles = work_->archive.troubles();
    std::string packed = work_->archive.take_packed();
    const std::shared_ptr<OnPacked> on_packed = on_packed_;
    const std::weak_ptr<int> self = alive_;
    (*on_packed)(std::move(packed), state);
    if (!self.expired() && !paused_) set_paused(false);
  }

  const std::shared_ptr<Work> work_;
  const std::shared_ptr<OnPacked> on_packed_;
  std::unique_ptr<BrowseJob> job_;
  bool running_ = true;
  bool paused_ = false;
  bool finished_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<LogArchive> LogArchive::start(BrowseGate& gate, std::vector<ArchiveEntry> entries,
                                              OnPacked on_packed) {
  return std::make_unique<GateArchive>(gate, std::move(entries), std::move(on_packed));
}

}  // namespace muster
