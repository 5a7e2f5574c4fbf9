// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/archive.h"

#include <deque>

#include "supervisor/browse/archive_work.h"

namespace muster {

namespace {

class GateArchive final : public LogArchive {
  using Step = ArchiveWork::Step;

 public:
  GateArchive(BrowseGate& gate, OnPacked on_packed)
      : work_(std::make_shared<ArchiveWork>()),
        on_packed_(std::make_shared<OnPacked>(std::move(on_packed))) {
    job_ = gate.add([work = work_] { work->run(); }, [this] { tell(); });
  }

  void add_log(const std::string& name, const std::string& path) override {
    give({Step::Kind::kLog, name, path, 0, 0});
  }
  void begin_file(const std::string& name, int64_t size, int64_t time_s) override {
    give({Step::Kind::kBegin, name, {}, size, time_s});
  }
  void add_bytes(std::string bytes) override {
    backlog_ += bytes.size();
    give({Step::Kind::kBytes, {}, std::move(bytes), 0, 0});
  }
  void end_file() override { give({Step::Kind::kEnd, {}, {}, 0, 0}); }
  void finish() override { give({Step::Kind::kFinish, {}, {}, 0, 0}); }

  void set_paused(bool paused) override {
    paused_ = paused;
    go_on();
  }

  bool idle() const override { return !running_ && given_.empty() && work_->idle(); }
  size_t backlog() const override { return backlog_; }
  bool finished() const override { return finished_; }
  std::vector<std::string> troubles() const override {
    return running_ ? std::vector<std::string>() : work_->troubles();
  }

 private:
  void give(Step step) {
    given_.push_back(std::move(step));
    go_on();
  }

  // The pool has the work while a piece runs; what is given meanwhile waits.
  void go_on() {
    if (running_ || paused_ || (given_.empty() && work_->idle())) return;
    for (Step& step : given_)
      work_->add(std::move(step));
    given_.clear();
    running_ = true;
    job_->wake();
  }

  void tell() {
    running_ = false;
    finished_ = work_->finished();
    backlog_ = 0;
    for (const Step& step : given_)
      backlog_ += step.kind == Step::Kind::kBytes ? step.bytes.size() : 0;
    backlog_ += work_->backlog();
    const std::weak_ptr<int> self = alive_;
    const std::shared_ptr<OnPacked> on_packed = on_packed_;
    (*on_packed)(work_->take_packed());
    if (!self.expired()) go_on();
  }

  const std::shared_ptr<ArchiveWork> work_;
  const std::shared_ptr<OnPacked> on_packed_;
  std::unique_ptr<BrowseJob> job_;
  std::deque<Step> given_;
  size_t backlog_ = 0;
  bool running_ = false;
  bool paused_ = false;
  bool finished_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<LogArchive> LogArchive::start(BrowseGate& gate, OnPacked on_packed) {
  return std::make_unique<GateArchive>(gate, std::move(on_packed));
}

}  // namespace muster
