// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/meeting.h"

#include <algorithm>

namespace muster::comm::detail {
namespace {

// A wait in the store cannot be broken off from outside, so whoever may be stopped waits in pieces.
constexpr Duration kPiece{200};

}  // namespace

Meeting::Meeting(muster::Store& store, std::string name, std::span<const int> world_ranks,
                 int member, const std::string& about, Stopped stopped)
    : store_(store),
      name_(std::move(name)),
      member_(member),
      size_(static_cast<int>(world_ranks.size())),
      about_(about),
      stopped_(std::move(stopped)),
      call_(store, name_, world_ranks, member, about) {}

Result<void> Meeting::await(const std::vector<std::string>& keys, Deadline deadline) {
  while (stopped_) {
    if (std::optional<Error> error = stopped_()) return *std::move(error);
    const Duration left = time_left(deadline);
    if (left <= kPiece) break;  // the roll call waits for the rest, and knows who is missing
    const muster::Result<void> there = store_.wait(keys, kPiece);
    if (there) break;
    Error error = store_error(there.error(), about_);
    if (error.code != ErrorCode::kTimeout) return error;
  }
  return {};
}

Result<std::string> Meeting::lead(const Decide& decide, Deadline deadline) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(size_));
  for (int member = 0; member < size_; ++member)
    keys.push_back(name_ + "/" + std::to_string(member));
  if (Result<void> there = await(keys, deadline); !there) return std::move(there).error();
  Result<std::vector<std::string>> words = call_.collect(deadline);
  if (!words) return std::move(words).error();
  Result<std::string> decision = decide(*words);
  if (Result<void> published = call_.publish(decision); !published)
    return std::move(published).error();
  return decision;
}

Result<std::string> Meeting::hold(std::string_view word, const Decide& decide, Deadline deadline) {
  if (Result<void> answered = call_.answer(word); !answered) return std::move(answered).error();
  if (member_ == 0) return lead(decide, deadline);
  if (Result<void> there = await({name_ + "/result"}, deadline); !there)
    return std::move(there).error();
  return call_.result(deadline);
}

void Meeting::erase_word() {
  static_cast<void>(store_.erase(name_ + "/" + std::to_string(member_)));
}

void Meeting::erase() {
  erase_word();
  if (member_ == 0) static_cast<void>(store_.erase(name_ + "/result"));
}

}  // namespace muster::comm::detail
