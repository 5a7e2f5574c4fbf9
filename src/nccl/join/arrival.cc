// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/arrival.h"

#include <optional>
#include <vector>

#include "loop/socket_address.h"
#include "nccl/join/roll_call.h"

namespace muster::comm::detail {

namespace {

// One member's answer: its address, and who it is.
std::string encode(const Newcomer& newcomer) {
  return newcomer.address + "\n" + newcomer.identity.encode();
}

struct Member {
  std::string address{};
  Identity identity{};
};

std::optional<Member> decode(const std::string& answer) {
  const size_t line = answer.find('\n');
  if (line == std::string::npos) return std::nullopt;
  std::optional<Identity> identity = Identity::decode(std::string_view(answer).substr(line + 1));
  if (!identity) return std::nullopt;
  return Member{answer.substr(0, line), std::move(*identity)};
}

std::string who(const std::string& answer) {
  const std::optional<Member> member = decode(answer);
  return member ? member->identity.to_string() : "another process";
}

// Where there are addresses they tell; a shared file says nothing, but then each says which
// loopback it has.
Reach reach_of(const std::vector<std::string>& answers) {
  std::optional<Member> first;
  for (const std::string& answer : answers) {
    std::optional<Member> member = decode(answer);
    if (!member) return Reach::kNetwork;
    const auto address = SocketAddress::parse(member->address, 0);
    if (address && !address->is_loopback()) return Reach::kNetwork;
    if (!first) first = member;
    if (first->identity.boot != member->identity.boot ||
        first->identity.net_space != member->identity.net_space)
      return Reach::kNetwork;
  }
  return Reach::kLoopback;
}

class Arriving {
 public:
  Arriving(muster::Store& store, const Newcomer& newcomer, const std::string& about)
      : store_(store),
        newcomer_(newcomer),
        about_(about),
        ranks_(all_ranks(newcomer.place.size)),
        roll_call_(store, "member", ranks_, newcomer.place.rank, about) {}

  Result<void> enter() {
    if (Result<void> sizes = compare_sizes(); !sizes) return sizes;
    const int rank = newcomer_.place.rank;
    const std::string answer = encode(newcomer_);
    const auto there = store_.compare_set("member/" + std::to_string(rank), "", answer);
    if (!there) return store_error(there.error(), about_);
    if (*there == answer) return {};
    return fail(Error{ErrorCode::kMismatch,
                      about_ + ": rank " + std::to_string(rank) + " is there twice: " +
                          who(*there) + " and " + newcomer_.identity.to_string(),
                      {rank}});
  }

  // The last one says that all are here.
  Result<void> count() {
    const auto count = store_.add("arrived", 1);
    if (!count) return store_error(count.error(), about_);
    if (*count != newcomer_.place.size) return {};
    std::vector<std::string> keys;
    for (int rank : ranks_)
      keys.push_back("member/" + std::to_string(rank));
    const auto answers = store_.multi_get(keys);
    if (!answers) return store_error(answers.error(), about_);
    return roll_call_.publish(std::string(reach_of(*answers) == Reach::kLoopback ? "l" : "n"));
  }

  Result<Reach> result(Deadline deadline) {
    const Result<std::string> said = roll_call_.result(deadline);
    if (!said) return fail(said.error());
    return *said == "l" ? Reach::kLoopback : Reach::kNetwork;
  }

 private:
  // With the first who came.
  Result<void> compare_sizes() {
    const std::string size = std::to_string(newcomer_.place.size);
    const std::string rank = std::to_string(newcomer_.place.rank);
    const auto there = store_.compare_set("size", "", size + " " + rank);
    if (!there) return store_error(there.error(), about_);
    const size_t space = there->find(' ');
    const std::string their_size = there->substr(0, space);
    if (their_size == size) return {};
    const std::string their_rank = space == std::string::npos ? "?" : there->substr(space + 1);
    return fail(Error{ErrorCode::kMismatch,
                      about_ + ": the world's size is " + their_size + " on rank " + their_rank +
                          ", but " + size + " on rank " + rank,
                      {newcomer_.place.rank}});
  }

  // Tells those who wait, if nothing has been said yet.
  Error fail(Error error) {
    static_cast<void>(roll_call_.publish(error));
    return error;
  }

  muster::Store& store_;
  const Newcomer& newcomer_;
  const std::string& about_;
  const std::vector<int> ranks_;
  RollCall roll_call_;
};

}  // namespace

Result<Reach> arrive(muster::Store& store, const Newcomer& newcomer, const std::string& about,
                     Deadline deadline) {
  Arriving arriving(store, newcomer, about);
  store.set_timeout(time_left(deadline));
  if (Result<void> entered = arriving.enter(); !entered) return entered.error();
  if (Result<void> counted = arriving.count(); !counted) return counted.error();
  return arriving.result(deadline);
}

}  // namespace muster::comm::detail
