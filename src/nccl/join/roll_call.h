// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>
#include <muster/comm/work.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/core/operation.h"
#include "store/store.h"

namespace muster::comm::detail {

// "rank 3", "ranks 3 and 5-7", "ranks 0-2, 5 and 9".
std::string rank_names(std::vector<int> ranks);

// 0 to size - 1.
std::vector<int> all_ranks(int size);

// What is left until a deadline, at least 0.
Duration time_left(Deadline deadline);

// The store's error as this library's. ETIMEDOUT of a store that can still be used is kTimeout;
// what the store did not answer, or cannot any more, is kStoreLost. `doing` comes first in the
// message.
Error store_error(const muster::Error& error, std::string_view doing);

// Members that meet at keys of a store: each leaves an answer at "<name>/<member>", member 0
// collects them all and publishes one result, at "<name>/result", for which the others wait. That
// is O(n) traffic; who waits in vain looks which answers are missing and names them (kTimeout).
// A name serves once.
class RollCall {
 public:
  // `world_ranks`: the members', by member; they only name them in errors. `about` begins every
  // message ("joining at tcp://host:29500"). The store must outlive it.
  RollCall(muster::Store& store, std::string name, std::span<const int> world_ranks, int member,
           std::string about);

  Result<void> answer(std::string_view answer);

  // Member 0: everybody's answers, its own among them. A failure is published too.
  Result<std::vector<std::string>> collect(Deadline deadline);
  // Member 0: what the others' result() gives. The first that is published stands.
  Result<void> publish(const Result<std::string>& result);

  // All others.
  Result<std::string> result(Deadline deadline);

  // Whose answer is not there, now.
  Result<std::vector<int>> missing() const;

 private:
  std::string key(int member) const;
  Result<void> find_missing(int first, int end, Deadline deadline, std::vector<int>& missing) const;
  Error late() const;

  muster::Store& store_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  const int member_;
  const std::string about_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// An Error as bytes for other ranks, and back.
std::string encode_error(const Error& error);
Error decode_error(std::string_view bytes);

}  // namespace muster::comm::detail
