// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/roll_call.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "nccl/core/texts.h"
#include "store/wire.h"

namespace muster::comm::detail {

namespace {

using Clock = std::chrono::steady_clock;

// For finding out who is missing, when the time for their coming is over.
constexpr Duration kAskingTime{500};
// How much longer than member 0 the others wait, who otherwise would give up a moment before they
// are told why.
constexpr Duration kGrace{300};

constexpr char kGood = '+', kBad = '-';

}  // namespace

std::string rank_names(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::vector<std::string> runs;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] <= ranks[end - 1] + 1)
      ++end;
    runs.push_back(std::to_string(ranks[i]));
    if (ranks[end - 1] > ranks[i]) runs.back() += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 < runs.size() ? ", " : " and ") + runs[i];
  return text;
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Duration time_left(Deadline deadline) {
  const auto left = std::chrono::ceil<Duration>(deadline - Clock::now());
  return std::max(left, Duration(0));
}

Error store_error(const muster::Error& error, std::string_view doing) {
  const bool usable = error.code == ETIMEDOUT && !error.message.ends_with("connection is lost");
  return Error{usable ? ErrorCode::kTimeout : ErrorCode::kStoreLost,
               std::string(doing) + ": " + error.message};
}

std::string encode_error(const Error& error) {
  std::string bytes;
  append_int(bytes, static_cast<int32_t>(error.code));
  append_int(bytes, static_cast<uint32_t>(error.ranks.size()));
  for (int rank : error.ranks)
    append_int(bytes, static_cast<int32_t>(rank));
  return bytes + error.message;
}

Error decode_error(std::string_view bytes) {
  const auto number = [&] {
    int32_t value = 0;
    if (bytes.size() < sizeof value) return value;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
  };
  Error error;
  error.code = static_cast<ErrorCode>(
      std::clamp<int32_t>(number(), 0, static_cast<int32_t>(ErrorCode::kSystem)));
  for (int32_t left = number(); left > 0 && bytes.size() >= sizeof left; --left)
    error.ranks.push_back(number());
  error.message = bytes;
  return error;
}

RollCall::RollCall(muster::Store& store, std::string name, std::span<const int> world_ranks,
                   int member, std::string about)
    : store_(store),
      name_(std::move(name)),
      world_ranks_(world_ranks.begin(), world_ranks.end()),
      member_(member),
      about_(std::move(about)) {}

std::string RollCall::key(int member) const {
  return name_ + "/" + std::to_string(member);
}

Result<void> RollCall::answer(std::string_view answer) {
  const muster::Result<void> set = store_.set(key(member_), answer);
  if (!set) return store_error(set.error(), about_);
  return {};
}

// Asks for halves until it knows each one that is missing: few requests if few are.
Result<void> RollCall::find_missing(int first, int end, Deadline deadline,
                                    std::vector<int>& missing) const {
  if (first == end) return {};
  if (time_left(deadline).count() == 0)
    return Error{ErrorCode::kTimeout, about_ + ": the store answers slowly"};
  std::vector<std::string> keys;
  for (int member = first; member < end; ++member)
    keys.push_back(key(member));
  const muster::Result<bool> there = store_.check(keys);
  if (!there) return store_error(there.error(), about_);
  if (*there) return {};
  if (end - first == 1) {
    missing.push_back(world_ranks_[static_cast<size_t>(first)]);
    return {};
  }
  const int middle = first + (end - first) / 2;
  if (Result<void> found = find_missing(first, middle, deadline, missing); !found) return found;
  return find_missing(middle, end, deadline, missing);
}

Result<std::vector<int>> RollCall::missing() const {
  const Duration before = store_.timeout();
  store_.set_timeout(kAskingTime);
  std::vector<int> missing;
  const Result<void> found =
      find_missing(0, static_cast<int>(world_ranks_.size()), Clock::now() + kAskingTime, missing);
  store_.set_timeout(before);
  if (!found && missing.empty()) return found.error();
  return missing;
}

// What to say when the time is over.
Error RollCall::late() const {
  const std::string waited =
      " after " + time_text(std::chrono::round<Duration>(Clock::now() - begin_));
  Result<std::vector<int>> who = missing();
  if (!who) return who.error();
  if (who->empty())
    return Error{ErrorCode::kTimeout,
                 about_ + ": all have arrived, but rank " + std::to_string(world_ranks_[0]) +
                     " has not said so" + waited,
                 {world_ranks_[0]}};
  return Error{ErrorCode::kTimeout,
               about_ + ": " + rank_names(*who) + " of " + std::to_string(world_ranks_.size()) +
                   (who->size() == 1 ? " has" : " have") + " not arrived" + waited,
               *who};
}

Result<std::vector<std::string>> RollCall::collect(Deadline deadline) {
  std::vector<std::string> keys;
  for (size_t member = 0; member < world_ranks_.size(); ++member)
    keys.push_back(key(static_cast<int>(member)));
  const muster::Result<void> there = store_.wait(keys, time_left(deadline));
  if (!there) {
    Error error = store_error(there.error(), about_);
    if (error.code == ErrorCode::kTimeout) error = late();
    static_cast<void>(publish(error));
    return error;
  }
  muster::Result<std::vector<std::string>> answers = store_.multi_get(keys);
  if (!answers) return store_error(answers.error(), about_);
  return std::move(*answers);
}

// PyTorch's servers wake nobody for a COMPARE_SET, so the winner sets its value once more.
Result<void> RollCall::publish(const Result<std::string>& result) {
  const std::string bytes = result ? kGood + *result : kBad + encode_error(result.error());
  const muster::Result<std::string> stored = store_.compare_set(name_ + "/result", "", bytes);
  if (!stored) return store_error(stored.error(), about_);
  if (*stored != bytes) return {};
  const muster::Result<void> set = store_.set(name_ + "/result", bytes);
  if (!set) return store_error(set.error(), about_);
  return {};
}

Result<std::string> RollCall::result(Deadline deadline) {
  const std::vector<std::string> keys = {name_ + "/result"};
  const muster::Result<void> there = store_.wait(keys, time_left(deadline + kGrace));
  if (!there) {
    Error error = store_error(there.error(), about_);
    return error.code == ErrorCode::kTimeout ? late() : error;
  }
  const muster::Result<std::string> bytes = store_.get(keys[0]);
  if (!bytes) return store_error(bytes.error(), about_);
  if (bytes->starts_with(kGood)) return bytes->substr(1);
  return decode_error(std::string_view(*bytes).substr(std::min<size_t>(1, bytes->size())));
}

}  // namespace muster::comm::detail
