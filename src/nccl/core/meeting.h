// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/join/roll_call.h"

namespace muster::comm::detail {

// Members that meet in the store to agree on something: each says its part, member 0 decides, all
// get the decision. A roll call that can be broken off.
class Meeting {
 public:
  // Everybody's words, by member.
  using Decide = std::function<Result<std::string>(const std::vector<std::string>&)>;
  // Why to give up now, if there is a reason.
  using Stopped = std::function<std::optional<Error>()>;

  // The store must outlive it; the rest as in RollCall. A name serves once.
  Meeting(muster::Store& store, std::string name, std::span<const int> world_ranks, int member,
          const std::string& about, Stopped stopped = {});

  // Returns at the deadline at the latest (plus what it takes to find out who is missing).
  Result<std::string> hold(std::string_view word, const Decide& decide, Deadline deadline);
  // Takes away what this member said: when it knows the decision, nobody needs that any more.
  void erase_word();
  // And the decision as well, if it is member 0's: when all have read it.
  void erase();

 private:
  Result<std::string> lead(const Decide& decide, Deadline deadline);
  // Until the keys are there, the deadline has passed, or the store or somebody says stop.
  Result<void> await(const std::vector<std::string>& keys, Deadline deadline);

  muster::Store& store_;
  const std::string name_;
  const int member_;
  const int size_;
  const std::string about_;
  const Stopped stopped_;
  RollCall call_;
};

}  // namespace muster::comm::detail
