// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/world.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl/join/arrival.h"
#include "nccl/join/place.h"
#include "store/store.h"

namespace muster::comm {

namespace detail {
class MeetingPoint;
}

// One membership of a job. Communicators share it, so that the process leaves when the last of them
// is gone. Any thread.
class World::Impl : public std::enable_shared_from_this<World::Impl> {
 public:
  static Result<std::shared_ptr<Impl>> join(const JoinOptions& options);
  ~Impl();  // leaves, if leave() was not called

  const detail::Place& place() const { return place_; }

  // This host's address, a literal, as the other ranks can reach it: that of the interface which
  // MUSTER_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names, else the one that the store is reached from
  // (loopback if all are on this host).
  const std::string& local_address() const { return local_address_; }

  // A connection of its own to the store, for one caller that may wait in it for long. Its keys are
  // below "muster/comm/<attempt>/<prefix>/", and `timeout` is its timeout().
  Result<std::shared_ptr<muster::Store>> open_store(const std::string& prefix, Duration timeout);

  Result<Communicator> communicator(Backend backend, CommunicatorOptions options);
  Result<Communicator> grow_into(Backend backend, const std::string& name,
                                 CommunicatorOptions options);

  // The store itself, under "muster/comm/<attempt>", and its waits with deadlines.
  Result<void> set(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key, Duration timeout);
  Result<int64_t> add(std::string_view key, int64_t delta);
  Result<bool> erase(std::string_view key);
  Result<void> barrier(std::string_view name, Duration timeout);
  Result<void> leave(Duration timeout);

  Impl(detail::Place place, std::shared_ptr<detail::MeetingPoint> meeting, Duration timeout);

 private:
  // One call's connection: nobody else waits in it meanwhile. put_back() keeps it for the next.
  Result<std::shared_ptr<muster::Store>> take_store(Duration timeout);
  void put_back(std::shared_ptr<muster::Store> store);
  Result<std::shared_ptr<detail::MeetingPoint>> meeting();
  Result<void> settle(detail::Reach reach);
  std::string next_prefix(Backend backend, const std::string& name);

  const detail::Place place_;
  const std::string keys_;     // "muster/comm/<attempt>"
  const Duration timeout_;     // of calls that are not told another
  std::string local_address_;  // settled before join() returns
  std::mutex mutex_;
  std::shared_ptr<detail::MeetingPoint> meeting_;  // empty: left
  std::vector<std::shared_ptr<muster::Store>> idle_;
  std::map<std::string, int> made_;  // how many communicators, by backend and name
};

}  // namespace muster::comm
