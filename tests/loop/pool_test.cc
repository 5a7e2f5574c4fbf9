// SPDX-License-Identifier: Apache-2.0
#include "loop/pool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include "loop/loop_test.h"
#include "loop/unique_fd.h"

namespace muster {

TEST_CASE_FIXTURE(LoopTest, "four pieces of work that hang leave a thread for a fifth") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  int hung_done = 0;
  for (int i = 0; i < 4; ++i) {
    run_in_pool(
        loop,
        [fd = read_end.get()] {
          char byte;
          while (read(fd, &byte, 1) < 0) {
          }
        },
        [&] { ++hung_done; });
  }
  bool done = false;
  run_in_pool(
      loop, [] {}, [&] { done = true; });
  CHECK(run_until([&] { return done; }));
  CHECK(hung_done == 0);
  write_end.reset();
  CHECK(run_until([&] { return hung_done == 4; }));
}

TEST_CASE_FIXTURE(LoopTest, "how many threads there are is not told to children") {
  bool done = false;
  run_in_pool(
      loop, [] {}, [&] { done = true; });
  REQUIRE(run_until([&] { return done; }));
  CHECK(std::getenv("UV_THREADPOOL_SIZE") == nullptr);
}

}  // namespace muster
