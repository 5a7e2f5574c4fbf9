// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/world.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl/core/backend.h"

namespace muster::comm::detail {

// How many communicators were made of the same members under the same name. The members call in the
// same order, so that they count alike, and the number tells the communicators apart. Any thread.
class Names {
 public:
  int next(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return ++made_[what];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> made_;
};

// What communicators have from their world, and hand on to those that are made from them.
struct WorldContext {
  // A connection of its own, whose keys are this attempt's under the prefix; World::Impl's.
  std::function<Result<std::shared_ptr<muster::Store>>(const std::string& prefix, Duration timeout)>
      open_store{};
  std::string prefix{};  // of the communicator of all ranks; the keys of the others are below it
  int rank = 0;          // of the world
  int size = 1;
  int local_rank = 0;
  std::string local_address{};
  std::shared_ptr<void> keep{};  // the world stays as long as a communicator does
  std::shared_ptr<Names> names = std::make_shared<Names>();
};

// For World::communicator(), when the world has been compared, which took `store_time`. `prefix` is
// the same on all members, and no other communicator's. `world_ranks`: the members', by rank.
Result<Communicator> make_communicator(std::shared_ptr<World::Impl> world, Backend backend,
                                       CommunicatorOptions options, std::string prefix,
                                       std::vector<int> world_ranks, Deadline deadline,
                                       Duration store_time);
// For World::grow_into().
Result<Communicator> grow_into(std::shared_ptr<World::Impl> world, Backend backend,
                               const std::string& name, CommunicatorOptions options);
Result<Communicator> grow_into(WorldContext context, Backend backend, const std::string& name,
                               CommunicatorOptions options);

// Communicator's functions of the same names.
Result<Communicator> new_group(CommunicatorImpl& parent, std::span<const int> ranks,
                               CommunicatorOptions options);
Result<std::optional<Communicator>> split(CommunicatorImpl& parent, int color, int key,
                                          CommunicatorOptions options);
Result<Communicator> shrink(CommunicatorImpl& parent, std::span<const int> excluded,
                            CommunicatorOptions options);
Result<Communicator> grow(CommunicatorImpl& parent, std::span<const int> joining,
                          CommunicatorOptions options);

}  // namespace muster::comm::detail
