// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/core/meeting.h"

namespace muster::comm::detail {

// Checked mode: before an operation begins, its members tell each other through the store what they
// are about to do. What differs is named by rank (kMismatch, nothing was begun), and so is who does
// not come (kTimeout). Ranks in its errors are the communicator's, as a backend's are.
//
// Collectives meet under their number; compare() one at a time. Messages meet in pairs: the n-th
// send of one rank to another under a tag and the n-th receive there. Any thread.
class Checker {
 public:
  // Two connections, since a collective waits in the store as long as it likes.
  Checker(const BackendPlan& plan, std::shared_ptr<muster::Store> collectives,
          std::shared_ptr<muster::Store> messages, Meeting::Stopped stopped);

  Result<void> compare(const Operation& operation, uint64_t sequence, Deadline deadline);

  // The sends and receives among `operations`, which begin together; the others are passed over.
  class Messages {
   public:
    Messages(Checker& checker, std::span<const Operation> operations);
    // nullopt: a partner has not come yet, or earlier messages of the same pair have not begun.
    std::optional<Result<void>> poll();
    // Waits until poll() has an answer.
    Result<void> wait(Deadline deadline);
    // Those that begin now, or never will: the next ones of the same pairs may.
    void begun();
    // Who has not come, when the time is over.
    Error late() const;

   private:
    struct Message {
      std::string pair;  // "0-2/tag 7"
      int64_t number = 0;
      std::string own;  // what this rank calls
      bool sends = false;
      int peer = 0;
      bool agreed = false;
    };
    Result<bool> look(Message& message);

    Checker& checker_;
    std::vector<Message> messages_;
  };

  // Serialises CommBackend::start() among those whose turn comes in different threads.
  std::mutex& starting() { return starting_; }

 private:
  std::string rank_text(int rank) const;
  Result<std::string> decide(const std::vector<std::string>& words) const;
  Error to_members(Error error) const;

  const int rank_;
  const std::vector<int> world_ranks_;
  const std::shared_ptr<muster::Store> collectives_;
  const std::shared_ptr<muster::Store> store_;  // of messages
  const Meeting::Stopped stopped_;
  std::unique_ptr<Meeting> last_;  // its keys go when the next one is over

  std::mutex mutex_;
  std::map<std::string, int64_t> announced_;  // messages of a pair, by direction
  std::map<std::string, int64_t> begun_;
  std::mutex starting_;
};

// Messages that are checked first, then started: all in poll(), so that no thread waits for it.
class CheckedPending final : public Pending {
 public:
  CheckedPending(std::shared_ptr<Checker> checker, CommBackend& backend,
                 std::vector<Operation> operations, Deadline deadline);
  std::optional<Result<void>> poll() override;
  Error late() const override;

 private:
  const std::shared_ptr<Checker> checker_;
  CommBackend& backend_;  // of the communicator, which stays until its flights have ended
  const std::vector<Operation> operations_;
  const Deadline deadline_;
  Checker::Messages messages_;
  std::shared_ptr<Pending> pending_;  // null: not started yet
  std::optional<Error> failed_;       // why it never will be: whoever asks again hears it too
};

}  // namespace muster::comm::detail
