// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <future>

#include "in_threads.h"

using namespace doubles::test;

namespace {

// nccl.h of 2.28 does not declare these.
using GetUniqueId = ncclResult_t (*)(ncclComm_t, ncclUniqueId*);
using Grow = ncclResult_t (*)(ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*,
                              ncclConfig_t*);
template <typename F>
F function(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

int sum_of_ranks(int rank, ncclComm_t comm) {
  Rank self{rank};
  int* memory = self.device(std::vector<int>{rank});
  CHECK(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, comm, nullptr) == ncclSuccess);
  return self.values(memory, 1)[0];
}

}  // namespace

TEST_CASE("grow: those who are there keep their ranks, the others join by the id") {
  ncclUniqueId first;
  REQUIRE(ncclGetUniqueId(&first) == ncclSuccess);
  std::promise<ncclUniqueId> grown_id;
  std::shared_future<ncclUniqueId> known = grown_id.get_future().share();
  auto grow = function<Grow>("ncclCommGrow");
  auto get_id = function<GetUniqueId>("ncclCommGetUniqueId");
  bool found = grow != nullptr;
  REQUIRE(found);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      cudaSetDevice(r);
      ncclComm_t parent = nullptr;
      ncclComm_t comm = nullptr;
      if (r < 2) CHECK(ncclCommInitRank(&parent, 2, first, r) == ncclSuccess);
      ncclUniqueId id;
      if (r == 1) {
        CHECK(get_id(parent, &id) == ncclSuccess);
        grown_id.set_value(id);
      }
      if (r == 2) id = known.get();
      CHECK(grow(parent, 3, r == 2 ? &id : nullptr, r == 2 ? 2 : -1, &comm, nullptr) ==
            ncclSuccess);
      CHECK(sum_of_ranks(r, comm) == 3);
      CHECK(ncclCommDestroy(comm) == ncclSuccess);
      if (parent) CHECK(ncclCommDestroy(parent) == ncclSuccess);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}
