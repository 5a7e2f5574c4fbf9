// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster::comm {

struct JoinOptions {
  // Where the ranks meet:
  //   "env://"             MASTER_ADDR and MASTER_PORT, as muster and torchrun set them. Rank 0 is
  //                        the store itself where TORCHELASTIC_USE_AGENT_STORE is not true.
  //   "tcp://host:port"    rank 0 is the store.
  //   "file:///path"       a file that all ranks can reach and that nobody else uses.
  std::string init_method = "env://";
  // nullopt: RANK and WORLD_SIZE of the environment.
  std::optional<int> rank{};
  std::optional<int> world_size{};
  // For everybody to arrive. kTimeout names who has not.
  Duration timeout = std::chrono::minutes(10);
};

// This process' place among all ranks of the job, and the store where they meet. A cheap handle
// that may be copied; the last copy, communicators included, leaves. Two worlds in one process are
// two members.
//
// Errors of join(): kInvalidArgument (a variable or number that is missing or cannot be; named),
// kTimeout, kMismatch (world sizes differ; a rank that is already there; a file of an earlier job),
// kStoreLost, kSystem.
class World {
 public:
  // Waits until all ranks have come.
  static Result<World> join(const JoinOptions& options = {});

  // What the environment or JoinOptions said.
  int rank() const;
  int size() const;
  int local_rank() const;             // LOCAL_RANK, 0 where nobody set it
  int local_size() const;             // LOCAL_WORLD_SIZE, 1 where nobody set it
  int attempt() const;                // TORCHELASTIC_RESTART_COUNT: how often the job was restarted
  const std::string& run_id() const;  // TORCHELASTIC_RUN_ID, "" where nobody set it

  // A communicator of all ranks; each rank calls it, for each backend it wants, in the same order.
  // First the ranks compare library versions, devices and the environment that must agree; what
  // differs is named by rank (kMismatch).
  Result<Communicator> communicator(Backend backend, CommunicatorOptions options = {});

  // The side of those who join in Communicator::grow(): `name` is the grown communicator's.
  Result<Communicator> grow_into(Backend backend, const std::string& name,
                                 CommunicatorOptions options = {});

  // The job's store, for small things of your own. Keys and values are any bytes; get() waits
  // for a key, at most `timeout`.
  Result<void> set(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key, Duration timeout);
  Result<int64_t> add(std::string_view key, int64_t delta);
  Result<bool> erase(std::string_view key);
  // Returns when each rank has called it with this name, once.
  Result<void> barrier(std::string_view name, Duration timeout);

  // Waits for the others where that is needed: the rank that is the store stays until all have
  // left, at most `timeout`. The last one to leave a file removes it. Without it the last handle's
  // end does the same, with 30 s.
  Result<void> leave(Duration timeout = std::chrono::seconds(30));

  class Impl;
  explicit World(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::comm
