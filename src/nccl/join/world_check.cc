// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/world_check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "nccl/core/backend.h"
#include "nccl/join/identity.h"
#include "nccl/join/place.h"
#include "nccl/join/roll_call.h"
#include "store/wire.h"

namespace muster::comm::detail {

namespace {

constexpr size_t kMaxText = 4096;  // of a value in a message or an answer

// The next string of an answer, which may be anything.
std::optional<std::string> take(std::string_view& bytes) {
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > kMaxText || size > bytes.size()) return std::nullopt;
  std::string text(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return text;
}

// The ranks by what they say of one thing; nullopt: nothing, or that it is empty.
using Sides = std::map<std::optional<std::string>, std::vector<int>>;

Sides sides_of(std::span<const Facts> facts, const std::string& name) {
  Sides sides;
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    const auto& list = facts[rank].must_agree;
    const auto said = std::ranges::find(list, name, &std::pair<std::string, std::string>::first);
    const bool silent = said == list.end() || said->second.empty();
    sides[silent ? std::nullopt : std::optional(said->second)].push_back(static_cast<int>(rank));
  }
  return sides;
}

// "NCCL_PROTO is LL on ranks 0-2 and not set on rank 3"; the largest side first.
std::string describe(const std::string& name, const Sides& sides) {
  std::vector<const Sides::value_type*> order;
  for (const auto& side : sides)
    order.push_back(&side);
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto* side) { return side->second.size(); });
  std::string text = name + " is ";
  for (size_t i = 0; i < order.size(); ++i) {
    text += i == 0 ? "" : i + 1 < order.size() ? ", " : " and ";
    text += (order[i]->first ? "'" + *order[i]->first + "'" : "not set") + " on " +
            rank_names(order[i]->second);
  }
  return text;
}

// All but those of the largest side.
void blame_minority(const Sides& sides, std::vector<int>& ranks) {
  const auto largest =
      std::ranges::max_element(sides, {}, [](const auto& side) { return side.second.size(); });
  for (auto side = sides.begin(); side != sides.end(); ++side)
    if (side != largest) ranks.insert(ranks.end(), side->second.begin(), side->second.end());
}

std::vector<std::string> names_of(std::span<const Facts> facts) {
  std::vector<std::string> names;
  std::map<std::string, bool> known;
  for (const Facts& one : facts)
    for (const auto& [name, value] : one.must_agree)
      if (known.emplace(name, true).second) names.push_back(name);
  return names;
}

// Ranks that would use one device.
std::map<std::string, std::vector<int>> shared_devices(std::span<const Facts> facts) {
  std::map<std::string, std::vector<int>> users;
  for (size_t rank = 0; rank < facts.size(); ++rank)
    if (!facts[rank].device.empty()) users[facts[rank].device].push_back(static_cast<int>(rank));
  std::erase_if(users, [](const auto& entry) { return entry.second.size() < 2; });
  return users;
}

}  // namespace

std::string Facts::encode() const {
  std::string bytes;
  append_string(bytes, std::string_view(device).substr(0, kMaxText));
  for (const auto& [name, value] : must_agree) {
    append_string(bytes, std::string_view(name).substr(0, kMaxText));
    append_string(bytes, std::string_view(value).substr(0, kMaxText));
  }
  return bytes;
}

Result<Facts> Facts::decode(std::string_view bytes) {
  const Error nonsense{ErrorCode::kMismatch, "what it sent to be compared cannot be read"};
  Facts facts;
  std::optional<std::string> device = take(bytes);
  if (!device) return nonsense;
  facts.device = std::move(*device);
  while (!bytes.empty()) {
    std::optional<std::string> name = take(bytes), value = take(bytes);
    if (!name || !value || facts.must_agree.size() == kMaxFacts) return nonsense;
    facts.must_agree.emplace_back(std::move(*name), std::move(*value));
  }
  return facts;
}

bool checked(const CommunicatorOptions& options) {
  return options.checked.value_or(environment("MUSTER_COMM_CHECK") == "1");
}

Facts own_facts(Backend backend, const CommunicatorOptions& options, int local_rank) {
  const bool nccl = backend == Backend::kNccl;
  Facts facts;
  facts.must_agree = {{"the version of muster::comm", MUSTER_VERSION}};
  facts.must_agree.emplace_back("checked mode", checked(options) ? "on" : "off");
  if (nccl)
    facts.must_agree.emplace_back("CommunicatorOptions::init_roots",
                                  std::to_string(options.init_roots));
  for (auto& fact : nccl ? nccl_must_agree() : gloo_must_agree())
    facts.must_agree.push_back(std::move(fact));
  if (!nccl) return facts;
  const std::string device =
      nccl_device_identity(options.device >= 0 ? options.device : local_rank);
  // Devices of two hosts may be called the same; a host's containers share its devices.
  const Identity self = Identity::own();
  if (!device.empty()) facts.device = device + " of " + self.host + "\n" + self.boot;
  return facts;
}

Result<void> compare_facts(std::span<const Facts> facts) {
  std::vector<std::string> differences;
  std::vector<int> ranks;
  for (const std::string& name : names_of(facts)) {
    const Sides sides = sides_of(facts, name);
    if (sides.size() < 2) continue;
    differences.push_back(describe(name, sides));
    blame_minority(sides, ranks);
  }
  for (const auto& [device, users] : shared_devices(facts)) {
    differences.push_back(rank_names(users) + " use the same device, " +
                          device.substr(0, device.find('\n')) +
                          ": set CommunicatorOptions::device, LOCAL_RANK or CUDA_VISIBLE_DEVICES");
    ranks.insert(ranks.end(), users.begin(), users.end());
  }
  if (differences.empty()) return {};
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (size_t i = 0; i < std::min(differences.size(), kMaxNamedDifferences); ++i)
    text += (i > 0 ? "; " : "") + differences[i];
  if (differences.size() > kMaxNamedDifferences)
    text += "; and " + std::to_string(differences.size() - kMaxNamedDifferences) + " more";
  return Error{ErrorCode::kMismatch, std::move(text), std::move(ranks)};
}

namespace {

Result<void> compare_answers(const std::vector<std::string>& answers) {
  std::vector<Facts> facts;
  for (const std::string& answer : answers) {
    Result<Facts> decoded = Facts::decode(answer);
    if (!decoded) {
      const int rank = static_cast<int>(facts.size());
      return Error{ErrorCode::kMismatch,
                   "rank " + std::to_string(rank) + ": " + decoded.error().message,
                   {rank}};
    }
    facts.push_back(std::move(*decoded));
  }
  return compare_facts(facts);
}

}  // namespace

Result<void> compare_world(muster::Store& store, const Facts& own, int rank, int size,
                           const std::string& about, Deadline deadline) {
  const std::vector<int> ranks = all_ranks(size);
  RollCall roll_call(store, "facts", ranks, rank, about);
  if (Result<void> said = roll_call.answer(own.encode()); !said) return said;
  if (rank != 0) {
    const Result<std::string> result = roll_call.result(deadline);
    return result ? Result<void>() : result.error();
  }
  const Result<std::vector<std::string>> answers = roll_call.collect(deadline);
  if (!answers) return answers.error();
  Result<void> compared = compare_answers(*answers);
  if (!compared) {
    Error error = compared.error();
    error.message = about + ": " + error.message;
    compared = std::move(error);
  }
  const Result<void> told =
      roll_call.publish(compared ? Result<std::string>(std::string()) : compared.error());
  return !compared ? compared : told;
}

}  // namespace muster::comm::detail
