// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/making.h"

#include <algorithm>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/making_steps.h"
#include "nccl/join/world_check.h"
#include "nccl/join/world_impl.h"
#include "store/deadline.h"

// A communicator's making: its members meet at keys of the store, which names who does not come and
// who means something else, and then the backend connects them. The prefix of these keys is the
// same on all members without a word between them, and no other communicator's: it is made of the
// members, the name, and how often these two came together before.
namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// For giving back what is connected, when others could not.
constexpr std::chrono::seconds kFreeing{2};
Duration since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

// FNV-1a, with its bits mixed once more so that short texts differ in all of them.
uint64_t hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325ULL;
  for (const char each : text)
    value = (value ^ static_cast<uint8_t>(each)) * 0x100000001b3ULL;
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
  return value ^ (value >> 33);
}

std::string hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4)
    text += kDigits[(value >> shift) & 15];
  return text;
}

std::string description(const Making& making) {
  return std::string(to_string(making.kind)) + " communicator of " +
         std::to_string(making.members.size()) + " ranks" +
         (checked(making.options) ? ", checked" : ", not checked");
}

// Member 0: whether all have come to make the same.
Result<std::string> compare(const std::vector<std::string>& answers, const Making& making) {
  for (size_t i = 1; i < answers.size(); ++i) {
    if (answers[i] == answers[0]) continue;
    const int rank = making.members[i];
    return Error{ErrorCode::kMismatch,
                 "making communicator " + making.options.name + ": rank " + std::to_string(rank) +
                     " makes a " + answers[i] + ", rank " + std::to_string(making.members[0]) +
                     " a " + answers[0],
                 {rank}};
  }
  return std::string();
}

Result<void> meet(const Making& making, int rank, muster::Store& store) {
  Meeting meeting(store, "meet", making.members, rank, "making communicator " + making.options.name,
                  making.stopped);
  const Result<std::string> agreed = meeting.hold(
      description(making),
      [&](const std::vector<std::string>& words) { return compare(words, making); },
      making.deadline);
  if (!agreed) return agreed.error();
  meeting.erase_word();
  return {};
}

Error in_making(const Making& making, Error error) {
  for (int& rank : error.ranks)
    if (const auto index = static_cast<size_t>(rank); index < making.members.size())
      rank = making.members[index];
  error.message = "making communicator " + making.options.name + ": " + error.message;
  return error;
}

// Checked mode's connections. What waits there says how long in the call itself; all else must be
// answered soon, since the watcher's thread asks too.
Result<void> open_checks(const WorldContext& world, const Making& making,
                         CommunicatorImpl::Parts& parts) {
  for (auto* connection : {&parts.check_collectives, &parts.check_messages}) {
    Result<std::shared_ptr<muster::Store>> store =
        world.open_store(making.prefix, time_left(making.deadline));
    if (!store) return in_making(making, std::move(store).error());
    (*store)->set_timeout(Duration(0));
    *connection = std::move(*store);
  }
  return {};
}

// All that may go wrong here alone, before the others are told that this one is ready.
Result<CommunicatorImpl::Parts> prepare(const WorldContext& world, const Making& making) {
  CommunicatorImpl::Parts parts;
  BackendPlan& plan = parts.plan;
  const auto own = std::find(making.members.begin(), making.members.end(), world.rank);
  plan.rank = static_cast<int>(own - making.members.begin());
  plan.size = static_cast<int>(making.members.size());
  plan.world_ranks = making.members;
  plan.name = making.options.name;
  plan.local_address = world.local_address;
  plan.local_rank = world.local_rank;
  plan.options = making.options;
  plan.options.checked = checked(making.options);
  plan.deadline = making.deadline;
  plan.grown_from = making.grown_from;
  Result<std::shared_ptr<muster::Store>> store =
      world.open_store(making.prefix, time_left(making.deadline));
  if (!store) return in_making(making, std::move(store).error());
  plan.store = std::move(*store);
  if (*plan.options.checked)
    if (Result<void> opened = open_checks(world, making, parts); !opened)
      return std::move(opened).error();
  if (plan.size > 1)
    if (Result<void> met = meet(making, plan.rank, *plan.store); !met)
      return std::move(met).error();
  return parts;
}

Result<std::string> all_made(const std::vector<std::string>& words, const Making& making) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) continue;
    Error error = decode_error(words[i]);
    error.message = "making communicator " + making.options.name + ": rank " +
                    std::to_string(making.members[i]) + " could not: " + error.message;
    return error;
  }
  return std::string();
}

std::string connecting(const Making& making) {
  return "making communicator " + making.options.name + ": connecting";
}

// Each member tells how its connecting went, so that the making succeeds or fails for all. Without
// it one that has finished might close before another has, which would take that for a failure.
Result<void> agree_made(const Making& making, const BackendPlan& plan) {
  Meeting meeting(*plan.store, "made", making.members, plan.rank, connecting(making),
                  making.stopped);
  const Result<std::string> all = meeting.hold(
      "", [&](const std::vector<std::string>& words) { return all_made(words, making); },
      making.deadline);
  if (!all) return all.error();
  meeting.erase_word();
  return {};
}

// Tells the others, and waits for nobody.
void give_up(const Making& making, const BackendPlan& plan, const Error& error) {
  RollCall call(*plan.store, "made", making.members, plan.rank, connecting(making));
  const std::string word = encode_error(error);
  static_cast<void>(call.answer(word));
  if (plan.rank > 0) return;
  std::vector<std::string> words(making.members.size());
  words[0] = word;
  static_cast<void>(call.publish(all_made(words, making)));
}

Result<std::unique_ptr<CommBackend>> connect(const Making& making, const BackendPlan& plan) {
  Result<std::unique_ptr<CommBackend>> backend = making.maker(plan);
  if (plan.size == 1) {
    if (!backend) return in_making(making, std::move(backend).error());
    return backend;
  }
  if (!backend) {
    Error error = in_making(making, backend.error());
    Error told = error;
    told.message = backend.error().message;
    give_up(making, plan, told);
    return error;
  }
  if (Result<void> made = agree_made(making, plan); !made) {
    (*backend)->stop();
    static_cast<void>((*backend)->abort(Clock::now() + kFreeing));
    return std::move(made).error();
  }
  return backend;
}

}  // namespace

std::string joined(std::span<const int> ranks) {
  std::string text;
  for (const int rank : ranks)
    text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

// "0-3", "1,4,5", "0+63 more".
std::string short_list(std::span<const int> ranks) {
  constexpr size_t kLongest = 24;
  const bool in_a_row = std::adjacent_find(ranks.begin(), ranks.end(), [](int first, int second) {
                          return second != first + 1;
                        }) == ranks.end();
  if (in_a_row && ranks.size() > 2)
    return std::to_string(ranks.front()) + "-" + std::to_string(ranks.back());
  std::string all = joined(ranks);
  if (all.size() <= kLongest) return all;
  return std::to_string(ranks.front()) + "+" + std::to_string(ranks.size() - 1) + " more";
}

Result<Communicator> make(const WorldContext& world, const Making& making) {
  const Clock::time_point begin = Clock::now();
  Result<CommunicatorImpl::Parts> prepared = prepare(world, making);
  if (!prepared) return std::move(prepared).error();
  CommunicatorImpl::Parts parts = *std::move(prepared);
  const Duration met = since(begin);
  Result<std::unique_ptr<CommBackend>> backend = connect(making, parts.plan);
  if (!backend) return std::move(backend).error();
  parts.timings = (*backend)->timings();
  parts.timings.store += making.store_time + met;
  parts.world = world;
  parts.kind = making.kind;
  parts.id = hash(making.prefix);
  parts.prefix = making.prefix;
  parts.backend = std::move(*backend);
  // From now on it is asked for what is there, by threads that must not wait.
  parts.plan.store->set_timeout(Duration(0));
  return Communicator(std::make_shared<CommunicatorImpl>(std::move(parts)));
}

Maker maker_of(Backend kind) {
  return kind == Backend::kGloo ? make_gloo_backend : make_nccl_backend;
}

Making derived(CommunicatorImpl& parent, std::vector<int> members, CommunicatorOptions options,
               const std::string& suffix) {
  const WorldContext& world = parent.parts().world;
  Making making;
  making.kind = parent.parts().kind;
  if (options.name.empty()) options.name = parent.plan().name + "/" + suffix;
  const std::string what = options.name + " of " + joined(members);
  const int count = world.names->next(what);
  making.prefix = world.prefix + "/" + hex(hash(what)) + "-" + std::to_string(count);
  making.members = std::move(members);
  making.deadline = deadline_in(options.timeout);
  making.options = std::move(options);
  making.maker = maker_of(making.kind);
  // Ending the parent ends the making; one that has ended before may still have children.
  if (!parent.refusal("")) making.stopped = [&parent] { return parent.refusal("the end"); };
  return making;
}

WorldContext context_of(std::shared_ptr<World::Impl> world) {
  WorldContext context;
  context.open_store = [impl = world.get()](const std::string& prefix, Duration timeout) {
    return impl->open_store(prefix, timeout);
  };
  context.rank = world->place().rank;
  context.size = world->place().size;
  context.local_rank = world->place().local_rank;
  context.local_address = world->local_address();
  context.keep = std::move(world);
  return context;
}

Result<Communicator> make_communicator(std::shared_ptr<World::Impl> world, Backend backend,
                                       CommunicatorOptions options, std::string prefix,
                                       std::vector<int> world_ranks, Deadline deadline,
                                       Duration store_time) {
  if (options.name.empty()) {
    const std::string number = prefix.substr(prefix.find_last_of('/') + 1);
    options.name = number == "0" ? "world" : "world/" + number;
  }
  WorldContext context = context_of(std::move(world));
  context.prefix = prefix;
  return make(context, {.kind = backend,
                        .prefix = std::move(prefix),
                        .members = std::move(world_ranks),
                        .options = std::move(options),
                        .deadline = deadline,
                        .store_time = store_time,
                        .maker = maker_of(backend)});
}

}  // namespace muster::comm::detail
