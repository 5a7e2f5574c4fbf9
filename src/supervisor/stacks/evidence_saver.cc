// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/evidence_saver.h"

#include <errno.h>
#include <unistd.h>

#include <utility>
#include <variant>

#include "supervisor/stacks/stack_groups.h"

namespace muster {

namespace {

constexpr char kName[] = "muster-stacks";
constexpr char kStopped[] = "the workers were told to stop before all was seen";

// From the child, into its end of the pipe.
void write_line(int out, std::string_view line) {
  std::string text(line);
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t done = ::write(out, rest.data(), rest.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) ::_exit(1);
    rest.remove_prefix(static_cast<size_t>(done));
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

EvidenceSaver::EvidenceSaver(Parts parts)
    : parts_(std::move(parts)), self_(std::make_shared<EvidenceSaver*>(this)) {}

EvidenceSaver::~EvidenceSaver() = default;

std::vector<ProbeTarget> EvidenceSaver::targets() const {
  std::vector<ProbeTarget> targets;
  const AttemptState* attempt = parts_.recorder.state().current();
  if (attempt == nullptr) return targets;
  for (const RankState& rank : attempt->ranks) {
    if (rank.node == attempt->node && rank.phase == RankPhase::kRunning) {
      targets.push_back({rank.rank, rank.pid, parts_.recording ? parts_.recording(rank) : ""});
    }
  }
  return targets;
}

void EvidenceSaver::save(const std::string& why) {
  if (busy()) return;
  stage_ = Stage::kStarting;
  const AttemptState* attempt = parts_.recorder.state().current();
  const int number = attempt == nullptr ? -1 : attempt->attempt;
  if (std::exchange(attempt_, number) != number) saves_ = 0;
  saved_ = {};
  saved_.attempt = number;
  saved_.host = parts_.host;
  saved_.why = why;
  answer_ = {};
  asked_ranks_ = 0;
  unread_.clear();
  taken_ = 0;
  // Never from inside the caller's call.
  later([](EvidenceSaver& saver) {
    if (saver.stage_ == Stage::kStarting) saver.start(saver.targets());
  });
}

void EvidenceSaver::start(const std::vector<ProbeTarget>& targets) {
  asked_ranks_ = targets.size();
  if (targets.empty()) return finish("no worker runs here");
  if (saves_ >= kMaxSaves) {
    return finish("evidence was saved " + std::to_string(kMaxSaves) +
                  " times of this attempt: no more");
  }
  ProbeOrder order;
  order.targets = targets;
  order.host = parts_.host;
  order.why = saved_.why;
  order.proc = parts_.proc;
  if (!parts_.run_dir.empty()) {
    order.folder = parts_.run_dir + "/attempt_" + std::to_string(attempt_) + "/stacks_" +
                   std::to_string(saves_);
  }
  ++saves_;
  saved_.folder = order.folder;
  auto child = OwnChild::start(kName, [&order](int out) {
    run_probe(order, [out](std::string_view line) { write_line(out, line); });
  });
  if (!child) return finish(child.error().message);
  child_.emplace(std::move(*child));
  stage_ = Stage::kLooking;
  auto watch = FdWatch::start(parts_.loop, child_->output(), FdWatch::kReadable,
                              [this](int) { on_output(); });
  if (!watch) return finish(watch.error().message);
  watch_ = std::move(*watch);
  patience_ = Timer::start(parts_.loop, kPatience, [this] {
    finish("not all could be seen within " + std::to_string(kPatience.count() / 1000) + " s");
  });
}

void EvidenceSaver::on_output() {
  switch (read_output()) {
    case Pipe::kEmpty:
      return;
    case Pipe::kEnded:
      return finish("");
    case Pipe::kTooFull:
      return finish("there was more to tell than " + std::to_string(kMaxAnswer) + " bytes");
  }
}

EvidenceSaver::Pipe EvidenceSaver::read_output() {
  char chunk[16 * 1024];
  while (taken_ <= kMaxAnswer) {
    const ssize_t got = ::read(child_->output(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Pipe::kEmpty;
    if (got <= 0) return Pipe::kEnded;
    taken_ += static_cast<size_t>(got);
    unread_.append(chunk, static_cast<size_t>(got));
    take_lines();
  }
  return Pipe::kTooFull;
}

void EvidenceSaver::take_lines() {
  size_t begin = 0;
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n', begin)) {
    answer_.take(std::string_view(unread_).substr(begin, end - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
}

// What it told before its end counts.
void EvidenceSaver::end_child() {
  watch_.reset();
  patience_.reset();
  if (!child_) return;
  child_->end();
  read_output();
  child_.reset();
}

void EvidenceSaver::finish(const std::string& trouble) {
  end_child();
  stage_ = Stage::kIdle;
  ended_ = Clock::now();
  std::vector<std::string> troubles = std::move(answer_.troubles);
  if (!trouble.empty()) troubles.push_back(trouble);
  if (trouble.empty() && answer_.activity.size() < asked_ranks_) {
    troubles.emplace_back("the process that looks ended too early");
  }
  std::vector<RankActivity> ranks;
  for (const auto& [rank, text] : answer_.activity)
    ranks.push_back({rank, text});
  saved_.groups = group_lines(ranks);
  saved_.trouble = joined(troubles);
  if (!answer_.wrote) saved_.folder.clear();
  parts_.recorder.record(std::exchange(saved_, {}));
}

void EvidenceSaver::observe(const Event& event) {
  if (!busy()) return;
  // Nobody reads any more what would be recorded now.
  if (std::holds_alternative<event::JobEnded>(event.body)) {
    end_child();
    stage_ = Stage::kIdle;
    return;
  }
  const auto* sent = std::get_if<event::SignalSent>(&event.body);
  if (sent == nullptr || sent->reason == StopReason::kNone || stage_ == Stage::kCut) return;
  stage_ = Stage::kCut;
  end_child();
  // Not from inside the recorder, which is telling others of this event.
  later([](EvidenceSaver& saver) {
    if (saver.stage_ == Stage::kCut) saver.finish(kStopped);
  });
}

void EvidenceSaver::later(void (*task)(EvidenceSaver&)) {
  parts_.loop.post([task, self = std::weak_ptr<EvidenceSaver*>(self_)] {
    if (auto saver = self.lock()) task(**saver);
  });
}

}  // namespace muster
