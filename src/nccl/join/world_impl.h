// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/world.h>

#include <memory>
#include <mutex>
#include <string>

#include "nccl/core/operation.h"
#include "store/store.h"

namespace muster::comm {

namespace detail {

class MeetingPoint;

// What the environment and JoinOptions say of this process.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int attempt = 0;
  std::string run_id{};
};

}  // namespace detail

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

  Impl(detail::Place place, std::unique_ptr<detail::MeetingPoint> meeting);

 private:
  const detail::Place place_;
  std::string local_address_;
  std::unique_ptr<detail::MeetingPoint> meeting_;
  std::mutex mutex_;
  int communicators_ = 0;  // made so far: the same number on each rank names the next one's keys
  bool left_ = false;
};

}  // namespace muster::comm
