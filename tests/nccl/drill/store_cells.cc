// SPDX-License-Identifier: Apache-2.0
// The store goes away, or stops answering, in the middle of a job.
#include <cstdio>

#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

// Has the harness do to the store what the cell says, once all ranks have asked for it; it answers
// with a line when it has.
void store_goes(Drill& drill) {
  std::printf("AT store\n");
  std::fflush(stdout);
  char line[16];
  drill.check(std::fgets(line, sizeof line, stdin) != nullptr, "the harness answers");
}

void works_on(Drill& drill) {
  Communicator all = drill.all(kLong);
  store_goes(drill);
  for (int i = 0; i < 3; ++i)
    drill.works(all);
  drill.succeeds("close", [&] { return all.close(); });
}

void no_new_group(Drill& drill) {
  Communicator all = drill.all(kLong);
  store_goes(drill);
  drill.fails("the group", {ErrorCode::kStoreLost, ErrorCode::kTimeout}, kShort,
              [&]() -> Result<void> {
                auto group = all.new_group(std::vector<int>{0, 1, 2}, {.timeout = kShort});
                if (group) return {};
                return std::move(group).error();
              });
  drill.works(all);
  drill.succeeds("close", [&] { return all.close(); });
}

void no_new_world(Drill& drill) {
  store_goes(drill);
  drill.fails("the world", {ErrorCode::kStoreLost, ErrorCode::kTimeout}, kShort,
              [&]() -> Result<void> {
                auto all = drill.world().communicator(drill.backend(), {.timeout = kShort});
                if (all) return {};
                return std::move(all).error();
              });
}

void checked(Drill& drill) {
  Communicator all = drill.all(kShort, true);
  drill.works(all);
  store_goes(drill);
  TestBuffer& buffer = drill.floats();
  drill.fails("an operation", {ErrorCode::kStoreLost, ErrorCode::kTimeout}, kShort,
              [&] { return all.all_reduce(buffer).wait(); });
}

void checked_messages(Drill& drill) {
  Communicator all = drill.all(kShort, true);
  drill.works(all);
  store_goes(drill);
  TestBuffer& buffer = drill.floats();
  drill.fails("a message", {ErrorCode::kStoreLost, ErrorCode::kTimeout}, kShort,
              [&] { return (drill.is(0) ? all.send(buffer, 1) : all.recv(buffer, 0)).wait(); });
}

}  // namespace

std::vector<Cell> store_cells() {
  return {{"store dead: communicators work on", 3, works_on, End::kExits, "kill"},
          {"store dead: no new group", 3, no_new_group, End::kExits, "kill"},
          {"store dead: no new world", 3, no_new_world, End::kExits, "kill"},
          {"store dead: checked", 3, checked, End::kExits, "kill"},
          {"store dead: checked messages", 3, checked_messages, End::kExits, "kill"},
          {"store stopped: communicators work on", 3, works_on, End::kExits, "stop"},
          {"store stopped: no new group", 3, no_new_group, End::kExits, "stop"},
          {"store stopped: no new world", 3, no_new_world, End::kExits, "stop"},
          {"store stopped: checked", 3, checked, End::kExits, "stop"},
          {"store stopped: checked messages", 3, checked_messages, End::kExits, "stop"}};
}

}  // namespace muster::comm::test
