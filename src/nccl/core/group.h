// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <mutex>
#include <optional>

#include "nccl/core/operation.h"
#include "nccl/core/work_state.h"

namespace muster::comm::detail {

// What the Works of a group's operations, and that of its end, wait for.
class GroupWork final : public WorkState {
 public:
  Result<void> wait() override;
  Result<void> wait(Duration limit) override;
  bool test() override;

  // The group has ended: these are its parts, one for each communicator, or why it is nothing.
  void begin(std::vector<Work> parts);
  void fail(Error error);

 private:
  std::optional<Error> problem();

  std::mutex mutex_;
  std::optional<Error> error_ =
      Error{ErrorCode::kInvalidArgument, "wait: the group is still open: call end() first"};
  bool open_ = true;
  std::vector<Work> parts_;  // set once, by begin()
};

// What a GroupGuard has collected in its thread. Nothing of it is known to a backend yet, so that
// there is nothing to close when it is dropped.
class OpenGroup {
 public:
  static OpenGroup* current();  // this thread's; null: no group is open
  static bool open(const GroupGuard* owner);
  // Null: `owner` has none, or no longer.
  static std::unique_ptr<OpenGroup> take(const GroupGuard* owner);

  Work collect(std::shared_ptr<CommunicatorImpl> communicator, Operation operation);
  // A call in it was wrong: the group as a whole is.
  void spoil(const Error& error);
  Work end(const OpOptions& options);
  void forget();

 private:
  struct Part {
    std::shared_ptr<CommunicatorImpl> communicator;
    std::vector<Operation> operations;
  };

  const GroupGuard* owner_ = nullptr;
  std::vector<Part> parts_;
  std::optional<Error> wrong_;
  std::shared_ptr<GroupWork> work_ = std::make_shared<GroupWork>();
};

}  // namespace muster::comm::detail
