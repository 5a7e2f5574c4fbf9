// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/world_impl.h"

#include "loop/socket_address.h"
#include "nccl/core/arguments.h"
#include "nccl/core/making.h"
#include "nccl/join/local_address.h"
#include "nccl/join/meeting_point.h"
#include "nccl/join/roll_call.h"
#include "nccl/join/world_check.h"
#include "nccl/report/own_page.h"
#include "store/deadline.h"
#include "store/prefix_store.h"

namespace muster::comm {

namespace {

using Clock = std::chrono::steady_clock;
using detail::Deadline;

// For the last handle's end, and for going away from a meeting that has failed: long enough for the
// others to read why.
constexpr Duration kLeaving{30'000};
constexpr Duration kLeavingFailed{700};

constexpr size_t kMaxIdleStores = 4;

std::string about(std::string_view doing, std::string_view key) {
  return "store: " + std::string(doing) + " '" + std::string(key) + "'";
}

}  // namespace

World::Impl::Impl(detail::Place place, std::shared_ptr<detail::MeetingPoint> meeting,
                  Duration timeout)
    : place_(std::move(place)),
      keys_("muster/comm/" + std::to_string(place_.attempt)),
      timeout_(timeout),
      meeting_(std::move(meeting)) {}

World::Impl::~Impl() {
  static_cast<void>(leave(kLeaving));
}

Result<std::shared_ptr<World::Impl>> World::Impl::join(const JoinOptions& options) {
  const Deadline deadline = deadline_in(options.timeout);
  Result<detail::Place> place = detail::read_place(options, detail::environment);
  if (!place) return place.error();
  const Result<detail::Venue> venue = detail::read_venue(options, detail::environment);
  if (!venue) return venue.error();
  detail::set_world(place->rank, place->size);
  const detail::Identity identity = detail::Identity::own();
  Result<std::unique_ptr<detail::MeetingPoint>> meeting =
      venue->kind == detail::Venue::Kind::kFile
          ? detail::meet_at_file(*venue, *place, identity, deadline)
          : detail::meet_at_store(*venue, *place, deadline);
  if (!meeting) return meeting.error();
  auto impl = std::make_shared<Impl>(*place, std::move(*meeting), options.timeout);
  // The meeting's own store, until others may use the world too.
  const std::shared_ptr<muster::Store> whole(impl, &impl->meeting_->store());
  muster::PrefixStore store(impl->keys_, whole);
  const Result<detail::Reach> reach =
      detail::arrive(store, {*place, identity, impl->meeting_->address()},
                     "joining at " + venue->to_string(), deadline);
  Result<void> settled = reach ? impl->settle(*reach) : reach.error();
  if (settled) return impl;
  static_cast<void>(impl->leave(kLeavingFailed));
  return settled.error();
}

Result<void> World::Impl::settle(detail::Reach reach) {
  Result<std::string> chosen = detail::chosen_address(detail::environment);
  if (!chosen) return chosen.error();
  local_address_ = chosen->empty() ? meeting_->address() : *chosen;
  const auto literal = muster::SocketAddress::parse(local_address_, 0);
  const bool inside = !literal || literal->is_loopback();
  if (!chosen->empty() || !inside) return {};
  if (reach == detail::Reach::kNetwork) local_address_ = detail::outside_address();
  if (local_address_.empty()) local_address_ = "127.0.0.1";
  return {};
}

Result<std::shared_ptr<detail::MeetingPoint>> World::Impl::meeting() {
  const std::lock_guard lock(mutex_);
  if (meeting_) return meeting_;
  return Error{ErrorCode::kInvalidArgument, "this world was left"};
}

Result<std::shared_ptr<muster::Store>> World::Impl::open_store(const std::string& prefix,
                                                               Duration timeout) {
  const Result<std::shared_ptr<detail::MeetingPoint>> meeting = this->meeting();
  if (!meeting) return meeting.error();
  Result<std::shared_ptr<muster::Store>> whole = (*meeting)->open_store(timeout);
  if (!whole) return whole;
  const std::string keys = prefix.empty() ? keys_ : keys_ + "/" + prefix;
  return std::shared_ptr<muster::Store>(
      std::make_shared<muster::PrefixStore>(keys, std::move(*whole)));
}

Result<std::shared_ptr<muster::Store>> World::Impl::take_store(Duration timeout) {
  timeout = std::max(timeout, Duration(0));
  {
    const std::lock_guard lock(mutex_);
    if (meeting_ && !idle_.empty()) {
      std::shared_ptr<muster::Store> store = std::move(idle_.back());
      idle_.pop_back();
      store->set_timeout(timeout);
      return store;
    }
  }
  return open_store("user", timeout);
}

void World::Impl::put_back(std::shared_ptr<muster::Store> store) {
  const std::lock_guard lock(mutex_);
  if (meeting_ && idle_.size() < kMaxIdleStores) idle_.push_back(std::move(store));
}

// The keys of the next communicator of this backend and name: the same on each rank, even if one
// has left out others.
std::string World::Impl::next_prefix(Backend backend, const std::string& name) {
  std::string prefix = std::string("world/") + to_string(backend) + "/";
  for (char c : name)
    prefix += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  const std::lock_guard lock(mutex_);
  return prefix + "/" + std::to_string(made_[prefix]++);
}

Result<Communicator> World::Impl::communicator(Backend backend, CommunicatorOptions options) {
  if (std::optional<Error> problem = detail::check_options("communicator", options))
    return *std::move(problem);
  const auto begin = Clock::now();
  const Deadline deadline = deadline_in(options.timeout);
  std::string prefix = next_prefix(backend, options.name);
  const std::string making = "making the communicator " +
                             (options.name.empty() ? "" : "'" + options.name + "' ") + "of " +
                             std::to_string(place_.size) + " ranks";
  const Result<std::shared_ptr<muster::Store>> store =
      open_store(prefix + "/check", detail::time_left(deadline));
  if (!store) return store.error();
  const Result<void> agreed =
      detail::compare_world(**store, detail::own_facts(backend, options, place_.local_rank),
                            place_.rank, place_.size, making, deadline);
  if (!agreed) return agreed.error();
  const auto store_time = std::chrono::duration_cast<Duration>(Clock::now() - begin);
  return detail::make_communicator(shared_from_this(), backend, std::move(options),
                                   std::move(prefix), detail::all_ranks(place_.size), deadline,
                                   store_time);
}

Result<Communicator> World::Impl::grow_into(Backend backend, const std::string& name,
                                            CommunicatorOptions options) {
  return detail::grow_into(shared_from_this(), backend, name, std::move(options));
}

Result<void> World::Impl::set(std::string_view key, std::string_view value) {
  Result<std::shared_ptr<muster::Store>> store = take_store(timeout_);
  if (!store) return store.error();
  const muster::Result<void> done = (*store)->set(key, value);
  if (!done) return detail::store_error(done.error(), about("set", key));
  put_back(std::move(*store));
  return {};
}

Result<std::string> World::Impl::get(std::string_view key, Duration timeout) {
  Result<std::shared_ptr<muster::Store>> store = take_store(timeout);
  if (!store) return store.error();
  const muster::Result<std::string> value = (*store)->get(key);
  if (!value) {
    Error error = detail::store_error(value.error(), about("get", key));
    if (error.code == ErrorCode::kTimeout) put_back(std::move(*store));
    return error;
  }
  put_back(std::move(*store));
  return *value;
}

Result<int64_t> World::Impl::add(std::string_view key, int64_t delta) {
  Result<std::shared_ptr<muster::Store>> store = take_store(timeout_);
  if (!store) return store.error();
  const muster::Result<int64_t> sum = (*store)->add(key, delta);
  if (!sum) return detail::store_error(sum.error(), about("add to", key));
  put_back(std::move(*store));
  return *sum;
}

Result<bool> World::Impl::erase(std::string_view key) {
  Result<std::shared_ptr<muster::Store>> store = take_store(timeout_);
  if (!store) return store.error();
  const muster::Result<bool> erased = (*store)->erase(key);
  if (!erased) return detail::store_error(erased.error(), about("erase", key));
  put_back(std::move(*store));
  return *erased;
}

// Not the store's own barrier, which cannot say who is missing.
Result<void> World::Impl::barrier(std::string_view name, Duration timeout) {
  const Deadline deadline = deadline_in(timeout);
  Result<std::shared_ptr<muster::Store>> taken = take_store(timeout);
  if (!taken) return taken.error();
  const std::vector<int> ranks = detail::all_ranks(place_.size);
  const std::string key(name);
  detail::RollCall roll_call(**taken, "barrier/" + key, ranks, place_.rank,
                             "barrier '" + key + "'");
  if (Result<void> said = roll_call.answer(""); !said) return said;
  if (place_.rank != 0) {
    const Result<std::string> result = roll_call.result(deadline);
    if (!result) return result.error();
  } else {
    if (auto all = roll_call.collect(deadline); !all) return all.error();
    if (Result<void> told = roll_call.publish(std::string()); !told) return told;
  }
  put_back(std::move(*taken));
  return {};
}

Result<void> World::Impl::leave(Duration timeout) {
  std::shared_ptr<detail::MeetingPoint> meeting;
  {
    const std::lock_guard lock(mutex_);
    meeting = std::move(meeting_);
    meeting_.reset();
    idle_.clear();
  }
  if (!meeting) return {};
  return meeting->leave(keys_, deadline_in(timeout));
}

}  // namespace muster::comm
