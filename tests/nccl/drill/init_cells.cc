// SPDX-License-Identifier: Apache-2.0
// Communicators whose making does not succeed.
#include <thread>

#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

Result<void> made(Result<Communicator> communicator) {
  if (communicator) return {};
  return std::move(communicator).error();
}

void a_rank_missing(Drill& drill) {
  if (!drill.is(2)) {
    drill.fails(
        "the world", {ErrorCode::kTimeout}, kShort,
        [&] { return made(drill.world().communicator(drill.backend(), {.timeout = kShort})); },
        "2");
  }
  drill.meet("gave up");
}

void a_member_missing(Drill& drill) {
  Communicator all = drill.all(kLong);
  if (drill.is(0)) {
    drill.fails(
        "the group", {ErrorCode::kTimeout}, kShort,
        [&] {
          return made(all.new_group(std::vector<int>{0, 2}, {.timeout = kShort}));
        },
        "2");
  }
  drill.meet("gave up");
  drill.works(all);
}

void a_rank_dead(Drill& drill) {
  if (drill.is(2)) drill.die();
  drill.fails("the world", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort, [&] {
    return made(drill.world().communicator(drill.backend(), {.timeout = kShort}));
  });
}

void a_rank_stopped(Drill& drill) {
  Communicator all = drill.all(kLong);  // so that it is not its start that takes long
  drill.meet("before");
  if (drill.is(2)) drill.stop();
  drill.fails("another world", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort, [&] {
    return made(drill.world().communicator(drill.backend(), {.timeout = kShort}));
  });
  drill.succeeds("abort", [&] { return all.abort(); });
}

// Aborting the communicator that another one is being made from ends the making.
void aborted_in_making(Drill& drill) {
  Communicator all = drill.all(kLong);
  if (!drill.is(0)) {
    Result<void> abort;
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(300));  // it cannot be seen that the making waits
      abort = all.abort("enough");
    });
    drill.fails("the group", {ErrorCode::kAborted}, milliseconds(1000), [&] {
      return made(all.new_group(std::vector<int>{0, drill.rank()}, {.timeout = kLong}));
    });
    other.join();
    drill.succeeds("the abort", [&] { return abort; });
  }
  drill.meet("aborted");
}

void not_a_member(Drill& drill) {
  Communicator all = drill.all(kLong);
  drill.fails("the group", {ErrorCode::kInvalidArgument}, milliseconds(0), [&] {
    return made(all.new_group(std::vector<int>{(drill.rank() + 1) % drill.size()}));
  });
  drill.fails("a member twice", {ErrorCode::kInvalidArgument}, milliseconds(0), [&] {
    return made(all.new_group(std::vector<int>{drill.rank(), drill.rank()}));
  });
  drill.fails(
      "a member that is not there", {ErrorCode::kInvalidArgument}, milliseconds(0),
      [&] {
        return made(all.new_group(std::vector<int>{drill.rank(), 99}));
      },
      "99");
  drill.works(all);
}

void again_after_a_failure(Drill& drill) {
  if (!drill.is(1)) {
    drill.fails("the world", {ErrorCode::kTimeout}, milliseconds(700), [&] {
      return made(drill.world().communicator(drill.backend(),
                                             {.timeout = milliseconds(700), .name = "first"}));
    });
  }
  drill.meet("gave up");
  Communicator all = drill.all(kLong, false, "second");
  drill.works(all);
}

}  // namespace

std::vector<Cell> init_cells() {
  return {{"making without a rank", 3, a_rank_missing},
          {"making without a member", 3, a_member_missing},
          {"making with a dead rank", 3, a_rank_dead, End::kKilled},
          {"making with a stopped rank", 3, a_rank_stopped, End::kStopped},
          {"aborted in making", 3, aborted_in_making},
          {"a group without oneself", 3, not_a_member},
          {"making again after a failure", 3, again_after_a_failure}};
}

}  // namespace muster::comm::test
