// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/whereabouts.h"

#include <algorithm>
#include <map>

#include "nccl/join/roll_call.h"

namespace muster::comm::detail {
namespace {

std::string key(int member) {
  return "late/" + std::to_string(member);
}

// What those say who have said something; "" of the others.
std::vector<std::string> words(const BackendPlan& plan, const std::string& own, Deadline until) {
  std::vector<std::string> said(static_cast<size_t>(plan.size));
  RollCall call(*plan.store, "late", plan.world_ranks, plan.rank, "whereabouts");
  if (!call.answer(own)) return said;
  std::vector<std::string> keys;
  keys.reserve(said.size());
  for (int member = 0; member < plan.size; ++member)
    keys.push_back(key(member));
  const muster::Result<void> all = plan.store->wait(keys, time_left(until));
  std::vector<int> silent;
  if (!all) {
    if (store_error(all.error(), "").code == ErrorCode::kStoreLost) return said;
    Result<std::vector<int>> missing = call.missing();
    if (!missing) return said;
    silent = std::move(*missing);
  }
  std::vector<size_t> heard;
  keys.clear();
  for (size_t i = 0; i < said.size(); ++i)
    if (std::find(silent.begin(), silent.end(), plan.world_ranks[i]) == silent.end()) {
      heard.push_back(i);
      keys.push_back(key(static_cast<int>(i)));
    }
  muster::Result<std::vector<std::string>> values = plan.store->multi_get(keys);
  for (size_t i = 0; values && i < heard.size() && i < values->size(); ++i)
    said[heard[i]] = (*values)[i];
  return said;
}

}  // namespace

void tell_whereabouts(const BackendPlan& plan, const std::string& operation) {
  if (plan.store == nullptr || plan.size == 1) return;
  static_cast<void>(plan.store->set(key(plan.rank), operation));
}

Whereabouts ask_whereabouts(const BackendPlan& plan, const std::string& operation, Deadline until) {
  Whereabouts found;
  if (plan.store == nullptr || plan.size == 1) return found;
  const std::vector<std::string> said = words(plan, operation, until);
  if (said[static_cast<size_t>(plan.rank)].empty()) return found;  // the store says nothing
  std::map<std::string, std::vector<int>> places;
  for (int member = 0; member < plan.size; ++member) {
    if (member == plan.rank) continue;
    const auto at = static_cast<size_t>(member);
    places[said[at]].push_back(plan.world_ranks[at]);
    if (said[at].empty()) found.unheard.push_back(member);
  }
  const auto add = [&](const std::string& text) {
    found.text += (found.text.empty() ? "" : "; ") + text;
  };
  for (const auto& [place, ranks] : places) {
    if (place.empty()) continue;
    add(rank_names(ranks) + (ranks.size() == 1 ? " was in " : " were in ") +
        (place == operation ? "it too" : place));
  }
  if (!found.unheard.empty()) add("nothing is heard of " + rank_names(places[""]));
  return found;
}

}  // namespace muster::comm::detail
