// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nccl/core/making.h"
#include "nccl/core/meeting.h"

// What the ways of making a communicator have in common.
namespace muster::comm::detail {

using Maker = std::function<Result<std::unique_ptr<CommBackend>>(const BackendPlan&)>;

struct Making {
  Backend kind = Backend::kGloo;
  std::string prefix{};        // of its keys, in the store of the attempt
  std::vector<int> members{};  // ranks of the world
  CommunicatorOptions options{};
  Deadline deadline{};
  Duration store_time{};  // spent already
  int grown_from = 0;     // as in BackendPlan
  Maker maker{};
  Meeting::Stopped stopped{};
};

// The members meet, then `maker` connects them.
Result<Communicator> make(const WorldContext& world, const Making& making);

// One that is made out of another: its name, where the caller gave none, is the parent's and
// `suffix`.
Making derived(CommunicatorImpl& parent, std::vector<int> members, CommunicatorOptions options,
               const std::string& suffix);

Maker maker_of(Backend kind);  // a new one, through the store

WorldContext context_of(std::shared_ptr<World::Impl> world);

std::string joined(std::span<const int> ranks);      // "0,1,2,3"
std::string short_list(std::span<const int> ranks);  // the same for names: "0-3"

}  // namespace muster::comm::detail
