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
      targets.push_back({rank.rank, rank.pid});
    }
  }
  return targets;
}

void EvidenceSaver::save(const std::string& why, Done done) {
  if (done) done_.push_back(std::move(done));
  if (busy()) return;
  starting_ = true;
  const AttemptState* attempt = parts_.recorder.state().current();
  const int number = attempt == nullptr ? -1 : attempt->attempt;
  if (std::exchange(attempt_, number) != number) saves_ = 0;
  saved_ = {};
  saved_.attempt = number;
  saved_.host = parts_.host;
  saved_.why = why;
  answer_ = {};
  unread_.clear();
  taken_ = 0;
  // Never from inside the caller's call.
  parts_.loop.post([self = std::weak_ptr<EvidenceSaver*>(self_)] {
    if (auto saver = self.lock()) (*saver)->start((*saver)->targets());
  });
}

void EvidenceSaver::start(const std::vector<ProbeTarget>& targets) {
  if (!starting_) return;
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
  starting_ = false;
  auto watch = FdWatch::start(parts_.loop, child_->output(), FdWatch::kReadable,
                              [this](int) { on_output(); });
  if (!watch) return finish(watch.error().message);
  watch_ = std::move(*watch);
  patience_ = Timer::start(parts_.loop, kPatience, [this] {
    finish("not all could be seen within " + std::to_string(kPatience.count() / 1000) + " s");
  });
}

void EvidenceSaver::on_output() {
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(child_->output(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return finish("");
    taken_ += static_cast<size_t>(got);
    if (taken_ > kMaxAnswer)
      return finish("there was more to tell than " + std::to_string(kMaxAnswer) + " bytes");
    unread_.append(chunk, static_cast<size_t>(got));
    take_lines();
  }
}

void EvidenceSaver::take_lines() {
  size_t begin = 0;
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n', begin)) {
    answer_.take(std::string_view(unread_).substr(begin, end - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
}

void EvidenceSaver::finish(const std::string& trouble) {
  starting_ = false;
  watch_.reset();
  patience_.reset();
  child_.reset();
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
  const event::EvidenceSaved saved = std::exchange(saved_, {});
  const std::vector<Done> tell = std::exchange(done_, {});
  const std::weak_ptr<EvidenceSaver*> self = self_;
  parts_.recorder.record(saved);
  if (self.expired()) return;
  for (const Done& done : tell)
    done(saved);
}

void EvidenceSaver::observe(const Event& event) {
  if (!child_) return;
  const auto* sent = std::get_if<event::SignalSent>(&event.body);
  if (sent == nullptr || sent->reason == StopReason::kNone) return;
  watch_.reset();
  child_->end();
  // Not from inside the recorder, which is telling others of this event.
  parts_.loop.post([self = std::weak_ptr<EvidenceSaver*>(self_)] {
    auto saver = self.lock();
    if (saver && (*saver)->child_) (*saver)->finish(kStopped);
  });
}

}  // namespace muster
