// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/checker.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "nccl/core/texts.h"

// What a member says of a collective is the text that an error would show, and for all_to_all with
// counts a second line with what it sends to and expects from each rank, which member 0 compares
// crosswise.
namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain{1};

std::string numbers(const std::vector<size_t>& counts) {
  std::string text;
  for (const size_t count : counts)
    text += std::to_string(count) + " ";
  return text;
}

std::vector<size_t> parse_numbers(std::string_view text) {
  std::vector<size_t> counts;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    size_t count = 0;
    at = std::from_chars(at, end, count).ptr;
    counts.push_back(count);
  }
  return counts;
}

std::string call_of(const std::string& word) {
  return word.substr(0, word.find('\n'));
}

// The answer that most give: those who say something else are the odd ones.
std::string most_common(const std::vector<std::string>& calls) {
  std::map<std::string, int> votes;
  for (const std::string& call : calls)
    ++votes[call];
  return std::max_element(
             votes.begin(), votes.end(),
             [](const auto& one, const auto& other) { return one.second < other.second; })
      ->first;
}

}  // namespace

Checker::Checker(const BackendPlan& plan, std::shared_ptr<muster::Store> collectives,
                 std::shared_ptr<muster::Store> messages, Meeting::Stopped stopped)
    : rank_(plan.rank),
      world_ranks_(plan.world_ranks),
      collectives_(std::move(collectives)),
      store_(std::move(messages)),
      stopped_(std::move(stopped)) {}

std::string Checker::rank_text(int rank) const {
  return "rank " + std::to_string(world_ranks_[static_cast<size_t>(rank)]);
}

Error Checker::to_members(Error error) const {
  for (int& rank : error.ranks) {
    const auto found = std::find(world_ranks_.begin(), world_ranks_.end(), rank);
    if (found != world_ranks_.end()) rank = static_cast<int>(found - world_ranks_.begin());
  }
  return error;
}

// In member 0. Errors carry ranks of the world: they go through the store.
Result<std::string> Checker::decide(const std::vector<std::string>& words) const {
  std::vector<std::string> calls;
  std::transform(words.begin(), words.end(), std::back_inserter(calls), call_of);
  const std::string common = most_common(calls);
  std::map<std::string, std::vector<int>> callers;
  Error error{ErrorCode::kMismatch, ""};
  for (size_t i = 0; i < calls.size(); ++i) {
    callers[calls[i]].push_back(world_ranks_[i]);
    if (calls[i] != common) error.ranks.push_back(world_ranks_[i]);
  }
  for (const auto& [call, ranks] : callers)
    error.message += (error.message.empty() ? "" : "; ") + rank_names(ranks) +
                     (ranks.size() == 1 ? " calls " : " call ") + call;
  if (callers.size() > 1) return error;

  std::vector<std::vector<size_t>> counts;  // of each member: to each, from each
  for (const std::string& word : words)
    if (const size_t line = word.find('\n'); line != std::string::npos)
      counts.push_back(parse_numbers(std::string_view(word).substr(line + 1)));
  const size_t size = world_ranks_.size();
  for (size_t from = 0; from < counts.size(); ++from)
    for (size_t to = 0; to < counts.size(); ++to) {
      if (counts[from].size() != 2 * size || counts[to].size() != 2 * size) continue;
      const size_t sent = counts[from][to];
      const size_t expected = counts[to][size + from];
      if (sent == expected) continue;
      return Error{ErrorCode::kMismatch,
                   rank_text(static_cast<int>(from)) + " sends " + std::to_string(sent) +
                       " elements to " + rank_text(static_cast<int>(to)) + ", which expects " +
                       std::to_string(expected),
                   {world_ranks_[from], world_ranks_[to]}};
    }
  return std::string();
}

Result<void> Checker::compare(const Operation& operation, uint64_t sequence, Deadline deadline) {
  if (world_ranks_.size() == 1) return {};
  std::string word = call_text(operation, world_ranks_);
  if (operation.kind == OpKind::kAllToAll && !operation.counts.empty())
    word += "\n" + numbers(operation.counts) + numbers(operation.out_counts);
  auto meeting = std::make_unique<Meeting>(*collectives_, "check/" + std::to_string(sequence),
                                           world_ranks_, rank_, "checked", stopped_);
  const Result<std::string> agreed = meeting->hold(
      word, [this](const std::vector<std::string>& words) { return decide(words); }, deadline);
  // Who is here has read the decision before this one.
  if (last_ != nullptr && (agreed || agreed.error().code == ErrorCode::kMismatch)) last_->erase();
  last_ = std::move(meeting);
  if (!agreed) return to_members(agreed.error());
  return {};
}

Checker::Messages::Messages(Checker& checker, std::span<const Operation> operations)
    : checker_(checker) {
  const std::lock_guard lock(checker.mutex_);
  for (const Operation& operation : operations) {
    if (!operation.point_to_point()) continue;
    Message message;
    message.sends = operation.kind == OpKind::kSend;
    message.peer = operation.root_or_peer;
    const int from = message.sends ? checker.rank_ : message.peer;
    const int to = message.sends ? message.peer : checker.rank_;
    message.pair =
        std::to_string(from) + "-" + std::to_string(to) + "/" + std::to_string(operation.tag);
    message.number = ++checker.announced_[message.pair];
    const ConstBuffer& size = message.sends ? operation.in : ConstBuffer(operation.out);
    message.own = std::to_string(size.count) + " " + to_string(size.type);
    messages_.push_back(std::move(message));
  }
  // An error shows again, and is told, in poll().
  for (const Message& message : messages_)
    static_cast<void>(checker.store_->set("message/" + message.pair + "/" +
                                              std::to_string(message.number) +
                                              (message.sends ? "/sent" : "/received"),
                                          message.own));
}

// Whether the partner has come, and says the same.
Result<bool> Checker::Messages::look(Message& message) {
  const std::string key = "message/" + message.pair + "/" + std::to_string(message.number) +
                          (message.sends ? "/received" : "/sent");
  const std::vector<std::string> keys = {key};
  const muster::Result<bool> there = checker_.store_->check(keys);
  if (!there) return store_error(there.error(), "checked");
  if (!*there) return false;
  const muster::Result<std::string> theirs = checker_.store_->get(key);
  if (!theirs) return store_error(theirs.error(), "checked");
  static_cast<void>(checker_.store_->erase(key));
  message.agreed = true;
  if (*theirs == message.own) return true;
  const std::string peer = checker_.rank_text(message.peer);
  const std::string mine = checker_.rank_text(checker_.rank_);
  return Error{ErrorCode::kMismatch,
               (message.sends ? mine : peer) + " sends " + (message.sends ? message.own : *theirs) +
                   ", " + (message.sends ? peer : mine) + " receives " +
                   (message.sends ? *theirs : message.own),
               {message.peer}};
}

std::optional<Result<void>> Checker::Messages::poll() {
  if (checker_.stopped_)
    if (std::optional<Error> error = checker_.stopped_()) return Result<void>(*std::move(error));
  for (Message& message : messages_) {
    if (message.agreed) continue;
    Result<bool> agreed = look(message);
    if (!agreed) return Result<void>(std::move(agreed).error());
    if (!*agreed) return std::nullopt;
  }
  const std::lock_guard lock(checker_.mutex_);
  std::map<std::string, int64_t> begun;  // with those of the same group that come first
  for (const Message& message : messages_) {
    const int64_t before = std::max(begun[message.pair], checker_.begun_[message.pair]);
    if (before + 1 != message.number) return std::nullopt;
    begun[message.pair] = message.number;
  }
  return Result<void>();
}

Result<void> Checker::Messages::wait(Deadline deadline) {
  for (;;) {
    if (std::optional<Result<void>> result = poll()) return *std::move(result);
    if (Clock::now() >= deadline) return late();
    std::this_thread::sleep_for(kLookAgain);  // a store has no event for one of several things
  }
}

void Checker::Messages::begun() {
  const std::lock_guard lock(checker_.mutex_);
  for (const Message& message : messages_) {
    int64_t& last = checker_.begun_[message.pair];
    last = std::max(last, message.number);
  }
}

Error Checker::Messages::late() const {
  Error error{ErrorCode::kTimeout, ""};
  for (const Message& message : messages_) {
    if (message.agreed) continue;
    error.message += (error.message.empty() ? "" : "; ") + checker_.rank_text(message.peer) +
                     (message.sends ? " has not called recv" : " has not called send");
    error.ranks.push_back(message.peer);
  }
  return error;
}

CheckedPending::CheckedPending(std::shared_ptr<Checker> checker, CommBackend& backend,
                               std::vector<Operation> operations, Deadline deadline)
    : checker_(std::move(checker)),
      backend_(backend),
      operations_(std::move(operations)),
      deadline_(deadline),
      messages_(*checker_, operations_) {}

std::optional<Result<void>> CheckedPending::poll() {
  if (pending_ != nullptr) return pending_->poll();
  if (failed_) return Result<void>(*failed_);
  // Together, so that what is found to be next is also started next.
  const std::lock_guard lock(checker_->starting());
  std::optional<Result<void>> checked = messages_.poll();
  if (!checked) return std::nullopt;
  if (!*checked) {
    messages_.begun();
    failed_ = checked->error();
    return checked;
  }
  Result<std::shared_ptr<Pending>> started = backend_.start(operations_, deadline_);
  messages_.begun();
  if (!started) {
    failed_ = started.error();
    return Result<void>(*failed_);
  }
  pending_ = std::move(*started);
  return pending_->poll();
}

Error CheckedPending::late() const {
  return pending_ != nullptr ? pending_->late() : messages_.late();
}

}  // namespace muster::comm::detail
