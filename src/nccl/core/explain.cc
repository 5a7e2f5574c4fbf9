// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/communicator_impl.h"
#include "nccl/core/texts.h"
#include "nccl/core/whereabouts.h"
#include "nccl/join/roll_call.h"
#include "store/deadline.h"

// What becomes of a backend's error: its text, and what it means for the communicator.
namespace muster::comm::detail {
namespace {

// After it the backend is still as the peers believe it to be.
bool harmless(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kMismatch;
}

std::string phrase(const Error& error, const Limit& limit) {
  switch (error.code) {
    case ErrorCode::kTimeout:
      return "timeout after " + time_text(limit.timeout);
    case ErrorCode::kPeerLost:
      return error.ranks.empty() ? "a peer is lost" : rank_names(error.ranks) + " lost";
    case ErrorCode::kAborted:
      return "aborted";
    default:
      return "";
  }
}

}  // namespace

Result<void> CommunicatorImpl::leave(std::span<const Operation> operations,
                                     std::span<const PageBlock::Slot> slots, const Limit& limit,
                                     Result<void> result) {
  for (const PageBlock::Slot& slot : slots)
    page_.end(slot, result.has_value());
  if (result) return result;
  Error error = std::move(result).error();
  if (health_.open()) tell_others(operation_name(operations.front(), slots.front()), error);
  return explain(what(operations, slots), limit, std::move(error));
}

// "all_reduce #7", "recv #3 from rank 1": without what may differ between ranks.
std::string CommunicatorImpl::operation_name(const Operation& operation,
                                             const PageBlock::Slot& slot) const {
  const std::string text = operation_text(operation, slot.sequence, plan().world_ranks);
  return text.substr(0, text.find(" ("));
}

bool CommunicatorImpl::heard_others(const Flight& flight) {
  const bool nobody = plan().store == nullptr || plan().size == 1;
  if (nobody || checker_ != nullptr || told_.load() || !health_.open()) return true;
  {
    const std::lock_guard lock(mutex_);
    if (listen_until_) return std::chrono::steady_clock::now() >= *listen_until_;
    listen_until_ = deadline_in(kListening);
  }
  tell_whereabouts(plan(), operation_name(flight.operations().front(), flight.slots().front()));
  return false;
}

Deadline CommunicatorImpl::listen_until() {
  const std::lock_guard lock(mutex_);
  if (!listen_until_) listen_until_ = deadline_in(kListening);
  return *listen_until_;
}

void CommunicatorImpl::tell_others(const std::string& operation, Error& error) {
  const bool late = error.code == ErrorCode::kTimeout;
  if (checker_ != nullptr || (!late && error.code != ErrorCode::kPeerLost)) return;
  if (told_.exchange(true)) return;
  if (!late) return tell_whereabouts(plan(), operation);
  const Whereabouts found = ask_whereabouts(plan(), operation, listen_until());
  if (!found.text.empty()) error.message += (error.message.empty() ? "" : "; ") + found.text;
  if (error.ranks.empty()) error.ranks = found.unheard;
}

std::string CommunicatorImpl::what(std::span<const Operation> operations,
                                   std::span<const PageBlock::Slot> slots) const {
  std::string text = operation_text(operations.front(), slots.front().sequence, plan().world_ranks);
  if (operations.size() > 1) text += " and " + std::to_string(operations.size() - 1) + " more";
  return text + " of communicator " + plan().name;
}

Error CommunicatorImpl::explain(const std::string& what, const Limit& limit, Error error) {
  for (int& rank : error.ranks)
    if (const auto index = static_cast<size_t>(rank); index < plan().world_ranks.size())
      rank = plan().world_ranks[index];
  const std::string first = phrase(error, limit);
  const std::string between = first.empty() || error.message.empty() ? "" : "; ";
  const bool caused = error.code != ErrorCode::kAborted || health_.open();
  if (caused) error.message = what + ": " + first + between + error.message;
  if (harmless(error.code)) return error;
  if (!caused) {  // stopped: the reason is another one
    Error why = health_.why();
    why.message = what + ": " + why.message;
    return why;
  }
  Error why = error;
  why.message = "not done after an earlier error: " + error.message;
  if (health_.end(std::move(why))) {
    parts_.backend->stop();
    notice_end();
  }
  return error;
}

}  // namespace muster::comm::detail
