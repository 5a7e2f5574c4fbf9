// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <tuple>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/making_steps.h"
#include "nccl/join/roll_call.h"
#include "store/deadline.h"

// Communicators made out of others. Where the library has a way of its own (NCCL's split, shrink,
// grow) it is used, with the members and names that are agreed here.
namespace muster::comm::detail {
namespace {

struct Choice {
  int color = kNoColor;
  int key = 0;
};

// "3 -1,0 0,...": the choices by rank.
std::optional<std::vector<Choice>> parse_choices(std::string_view text, int size) {
  std::vector<Choice> choices;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Choice choice;
    const auto color = std::from_chars(at, end, choice.color);
    if (color.ec != std::errc() || color.ptr == end || *color.ptr != ' ') return std::nullopt;
    const auto key = std::from_chars(color.ptr + 1, end, choice.key);
    if (key.ec != std::errc()) return std::nullopt;
    choices.push_back(choice);
    at = key.ptr < end ? key.ptr + 1 : end;
  }
  if (choices.size() != static_cast<size_t>(size)) return std::nullopt;
  return choices;
}

std::string choice_text(const Choice& choice) {
  return std::to_string(choice.color) + " " + std::to_string(choice.key);
}

// What every member has chosen.
Result<std::vector<Choice>> exchange(CommunicatorImpl& parent, const Choice& own,
                                     Deadline deadline) {
  const BackendPlan& plan = parent.plan();
  const std::string about = "split of communicator " + plan.name;
  Result<std::shared_ptr<muster::Store>> store =
      parent.parts().world.open_store(parent.parts().prefix, time_left(deadline));
  if (!store) return std::move(store).error();
  Meeting meeting(**store, "split/" + std::to_string(parent.next_meeting()), plan.world_ranks,
                  plan.rank, about, [&] { return parent.refusal("split"); });
  const Meeting::Decide join_all = [](const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words)
      all += (all.empty() ? "" : ",") + word;
    return Result<std::string>(std::move(all));
  };
  Result<std::string> all = meeting.hold(choice_text(own), join_all, deadline);
  if (!all) return std::move(all).error();
  meeting.erase_word();
  std::optional<std::vector<Choice>> choices = parse_choices(*all, plan.size);
  if (!choices) return Error{ErrorCode::kMismatch, about + ": the store gives no choices"};
  return *std::move(choices);
}

std::vector<int> members_of(const std::vector<Choice>& choices, int color,
                            const std::vector<int>& world_ranks) {
  std::vector<std::tuple<int, int>> order;  // key, rank
  for (size_t rank = 0; rank < choices.size(); ++rank)
    if (choices[rank].color == color) order.emplace_back(choices[rank].key, rank);
  std::sort(order.begin(), order.end());
  std::vector<int> members;
  members.reserve(order.size());
  for (const auto& [key, rank] : order)
    members.push_back(world_ranks[static_cast<size_t>(rank)]);
  return members;
}

// The library's own way where it has one, otherwise a new one.
Result<std::unique_ptr<CommBackend>> own_or_new(CommBackend::Made made, Backend kind,
                                                const BackendPlan& plan) {
  if (made) return std::move(*made);
  return maker_of(kind)(plan);
}

// Who is in no group: the library may want to hear it.
Result<std::optional<Communicator>> stay_out(CommunicatorImpl& parent, int key,
                                             const CommunicatorOptions& options,
                                             Deadline deadline) {
  BackendPlan plan;
  plan.name = options.name;
  plan.options = options;
  plan.deadline = deadline;
  CommBackend::Made made = parent.backend().split(kNoColor, key, plan);
  if (made && !*made) return std::move(*made).error();
  return std::optional<Communicator>();
}

bool take_number(std::string_view& text, int& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// The offer's prefix, old size and members.
bool take_offer(std::string_view offer, Making& making) {
  const size_t blank = offer.find(' ');
  if (blank == std::string_view::npos) return false;
  making.prefix = std::string(offer.substr(0, blank));
  offer.remove_prefix(blank + 1);
  if (!take_number(offer, making.grown_from)) return false;
  while (!offer.empty()) {
    offer.remove_prefix(1);
    if (!take_number(offer, making.members.emplace_back())) return false;
  }
  return static_cast<size_t>(making.grown_from) < making.members.size();
}

std::string offer_key(int world_rank) {
  return "for/" + std::to_string(world_rank);
}

}  // namespace

Result<Communicator> new_group(CommunicatorImpl& parent, std::span<const int> ranks,
                               CommunicatorOptions options) {
  const Caller caller = parent.caller();
  if (std::optional<Error> problem = check_options("new_group", options))
    return *std::move(problem);
  if (std::optional<Error> problem = check_members("new_group", ranks, caller.size, caller.rank))
    return *std::move(problem);
  std::vector<int> members;
  for (const int rank : ranks)
    members.push_back(parent.plan().world_ranks[static_cast<size_t>(rank)]);
  const std::string suffix = short_list(members);
  return make(parent.parts().world,
              derived(parent, std::move(members), std::move(options), suffix));
}

Result<std::optional<Communicator>> split(CommunicatorImpl& parent, int color, int key,
                                          CommunicatorOptions options) {
  if (std::optional<Error> problem = check_options("split", options)) return *std::move(problem);
  if (color < kNoColor)
    return invalid("split: color: " + std::to_string(color) +
                   ": it must be 0 or more, or kNoColor");
  if (std::optional<Error> problem = parent.refusal("split")) return *std::move(problem);
  const Deadline deadline = deadline_in(options.timeout);
  const auto begin = std::chrono::steady_clock::now();
  Result<std::vector<Choice>> choices = exchange(parent, {color, key}, deadline);
  if (!choices) return std::move(choices).error();
  if (color == kNoColor) return stay_out(parent, key, options, deadline);
  Making making = derived(parent, members_of(*choices, color, parent.plan().world_ranks),
                          std::move(options), "color" + std::to_string(color));
  making.deadline = deadline;
  making.store_time =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  making.maker = [&](const BackendPlan& plan) {
    return own_or_new(parent.backend().split(color, key, plan), parent.parts().kind, plan);
  };
  Result<Communicator> made = make(parent.parts().world, making);
  if (!made) return std::move(made).error();
  return std::optional<Communicator>(std::move(*made));
}

Result<Communicator> shrink(CommunicatorImpl& parent, std::span<const int> excluded,
                            CommunicatorOptions options) {
  const Caller caller = parent.caller();
  if (std::optional<Error> problem = check_options("shrink", options)) return *std::move(problem);
  if (std::optional<Error> problem = check_excluded(excluded, caller.size, caller.rank))
    return *std::move(problem);
  std::vector<int> members;
  for (int rank = 0; rank < caller.size; ++rank)
    if (std::find(excluded.begin(), excluded.end(), rank) == excluded.end())
      members.push_back(parent.plan().world_ranks[static_cast<size_t>(rank)]);
  const std::string suffix = short_list(members);
  Making making = derived(parent, std::move(members), std::move(options), suffix);
  making.maker = [&](const BackendPlan& plan) {
    // Also where the parent is freed here: the others hear from the backend that it is.
    return own_or_new(parent.backend().shrink(excluded, plan), parent.parts().kind, plan);
  };
  return make(parent.parts().world, making);
}

// The joining ranks know nothing but the name. The first member leaves each of them an offer in the
// store: "<prefix> <size of the old one> <members>". It is taken away by who takes it, or when the
// growing has failed.
Result<Communicator> grow(CommunicatorImpl& parent, std::span<const int> joining,
                          CommunicatorOptions options) {
  const BackendPlan& old = parent.plan();
  const WorldContext& world = parent.parts().world;
  if (std::optional<Error> problem = check_options("grow", options)) return *std::move(problem);
  if (options.name.empty())
    return invalid("grow: options.name: none; those who join have to say the same one");
  if (std::optional<Error> problem = check_joining(joining, old.world_ranks, world.size))
    return *std::move(problem);
  if (std::optional<Error> problem = parent.refusal("grow")) return *std::move(problem);
  const std::string name = options.name;
  std::vector<int> members = old.world_ranks;
  members.insert(members.end(), joining.begin(), joining.end());
  Making making = derived(parent, std::move(members), std::move(options), "");
  making.maker = [&](const BackendPlan& plan) {
    return own_or_new(parent.backend().grow(static_cast<int>(joining.size()), plan),
                      parent.parts().kind, plan);
  };
  WorldContext context = world;
  context.prefix = making.prefix;
  context.names = std::make_shared<Names>();  // those who join have counted nothing
  if (old.rank != 0) return make(context, making);

  Result<std::shared_ptr<muster::Store>> offers =
      world.open_store("grow/" + name, time_left(making.deadline));
  if (!offers) return std::move(offers).error();
  const std::string offer =
      making.prefix + " " + std::to_string(old.size) + " " + joined(making.members);
  for (const int rank : joining)
    if (muster::Result<void> told = (*offers)->set(offer_key(rank), offer); !told)
      return store_error(told.error(), "grow to communicator " + name);
  Result<Communicator> made = make(context, making);
  if (!made)
    for (const int rank : joining)
      static_cast<void>((*offers)->erase(offer_key(rank)));
  return made;
}

Result<Communicator> grow_into(std::shared_ptr<World::Impl> world, Backend backend,
                               const std::string& name, CommunicatorOptions options) {
  return grow_into(context_of(std::move(world)), backend, name, std::move(options));
}

Result<Communicator> grow_into(WorldContext context, Backend backend, const std::string& name,
                               CommunicatorOptions options) {
  if (std::optional<Error> problem = check_options("grow_into", options))
    return *std::move(problem);
  if (name.empty()) return invalid("grow_into: name: none");
  const std::string about = "grow_into communicator " + name;
  Making making;
  making.kind = backend;
  making.deadline = deadline_in(options.timeout);
  making.options = std::move(options);
  making.options.name = name;
  making.maker = maker_of(backend);
  Result<std::shared_ptr<muster::Store>> offers =
      context.open_store("grow/" + name, time_left(making.deadline));
  if (!offers) return std::move(offers).error();
  const std::string key = offer_key(context.rank);
  (*offers)->set_timeout(std::max(time_left(making.deadline), Duration(1)));
  muster::Result<std::string> offer = (*offers)->get(key);
  if (!offer) return store_error(offer.error(), about + ": waiting for its members to grow()");
  static_cast<void>((*offers)->erase(key));
  if (!take_offer(*offer, making))
    return Error{ErrorCode::kMismatch, about + ": no offer: " + *offer};
  context.prefix = making.prefix;
  return make(context, making);
}

}  // namespace muster::comm::detail
