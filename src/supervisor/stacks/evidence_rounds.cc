// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/evidence_rounds.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster {

std::string EvidenceRounds::begin(const std::string& why, Done done) {
  const AttemptState* attempt = parts_.state().current();
  const bool runs = attempt != nullptr &&
                    std::any_of(attempt->ranks.begin(), attempt->ranks.end(),
                                [](const RankState& r) { return r.phase == RankPhase::kRunning; });
  if (!runs) return "no worker runs";
  if (rounds_.size() >= kMaxRounds) return "too many ask for it at the same time";
  std::string refusal = parts_.request(why);
  if (!refusal.empty()) return refusal;
  auto round = std::make_shared<Round>();
  round->attempt = attempt->attempt;
  round->awaited = std::max<size_t>(1, attempt->nodes.size());
  round->done = std::move(done);
  round->patience =
      Timer::start(parts_.loop, kPatience, [this, late = std::weak_ptr<Round>(round)] {
        if (auto waited = late.lock()) finish(waited);
      });
  rounds_.push_back(std::move(round));
  return "";
}

void EvidenceRounds::observe(const Event& event) {
  const bool over = std::holds_alternative<event::JobEnded>(event.body);
  const auto* saved = std::get_if<event::EvidenceSaved>(&event.body);
  if (saved == nullptr && !over) return;
  const std::vector<std::shared_ptr<Round>> rounds = rounds_;
  for (const std::shared_ptr<Round>& round : rounds) {
    if (over) {
      finish(round);
      continue;
    }
    if (round->attempt != saved->attempt || round->awaited == 0) continue;
    round->saved.push_back(*saved);
    if (--round->awaited == 0) finish(round);
  }
}

void EvidenceRounds::finish(const std::shared_ptr<Round>& round) {
  std::erase(rounds_, round);
  round->patience.reset();
  round->done(round->saved);
}

}  // namespace muster
