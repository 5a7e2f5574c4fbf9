// SPDX-License-Identifier: Apache-2.0
#include "in_threads.h"

using namespace doubles::test;

namespace {

int sum_of_ranks(Rank& self, ncclComm_t comm) {
  int* memory = self.device(std::vector<int>{self.rank});
  ncclResult_t begun = ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, comm, self.stream);
  CHECK((begun == ncclSuccess || begun == ncclInProgress));
  CHECK(settled(comm) == ncclSuccess);
  return self.values(memory, 1)[0];
}

}  // namespace

TEST_CASE("without blocking everything is in progress first, and too early a call refused") {
  in_threads(
      2,
      [](Rank& self) {
        CHECK(sum_of_ranks(self, self.comm) == 1);
        int* memory = self.device(std::vector<int>{1});
        if (self.rank == 0) {
          // Alone: it cannot get further than connecting.
          ncclSend(memory, 1, ncclInt, 1, self.comm, self.stream);
          CHECK(ncclSend(memory, 1, ncclInt, 1, self.comm, self.stream) == ncclInvalidArgument);
          int barrier = 0;
          CHECK(ncclCommCount(self.comm, &barrier) == ncclInvalidArgument);
        } else {
          ncclRecv(memory, 1, ncclInt, 0, self.comm, self.stream);
        }
        CHECK(settled(self.comm) == ncclSuccess);
        CHECK(ncclCommFinalize(self.comm) == ncclInProgress);
        CHECK(settled(self.comm) == ncclSuccess);
      },
      false);
}

TEST_CASE("split: those of one color, by key") {
  in_threads(4, [](Rank& self) {
    ncclComm_t half = nullptr;
    int color = self.rank == 3 ? NCCL_SPLIT_NOCOLOR : self.rank % 2;
    CHECK(ncclCommSplit(self.comm, color, -self.rank, &half, nullptr) == ncclSuccess);
    if (self.rank == 3) {
      CHECK(half == nullptr);
      return;
    }
    int rank = -1;
    CHECK(ncclCommUserRank(half, &rank) == ncclSuccess);
    CHECK(rank == (self.rank == 0 ? 1 : 0));
    CHECK(sum_of_ranks(self, half) == (color == 0 ? 2 : 1));
    CHECK(ncclCommDestroy(half) == ncclSuccess);
  });
}

TEST_CASE("shrink: those who stay go on, even from a communicator that hangs") {
  in_threads(3, [](Rank& self) {
    CHECK(sum_of_ranks(self, self.comm) == 3);
    if (self.rank == 0) return;
    int* memory = self.device(std::vector<int>{1});
    ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, self.comm, self.stream);
    int excluded = 0;
    ncclComm_t rest = nullptr;
    CHECK(ncclCommShrink(self.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT) ==
          ncclSuccess);
    CHECK(sum_of_ranks(self, rest) == 3);
    CHECK(ncclCommDestroy(rest) == ncclSuccess);
  });
}

TEST_CASE("revoke ends what goes on; then only children can be made") {
  in_threads(2, [](Rank& self) {
    CHECK(sum_of_ranks(self, self.comm) == 1);
    int* memory = self.device(std::vector<int>{1});
    if (self.rank == 0) ncclRecv(memory, 1, ncclInt, 1, self.comm, self.stream);
    if (self.rank == 1) ncclRecv(memory, 1, ncclInt, 0, self.comm, self.stream);
    CHECK(cudaStreamQuery(self.stream) == cudaErrorNotReady);
    CHECK(ncclCommRevoke(self.comm, NCCL_REVOKE_DEFAULT) == ncclSuccess);
    CHECK(cudaStreamSynchronize(self.stream) == cudaSuccess);
    CHECK(ncclRecv(memory, 1, ncclInt, 0, self.comm, self.stream) == ncclInvalidUsage);
    ncclComm_t other = nullptr;
    CHECK(ncclCommSplit(self.comm, 0, 0, &other, nullptr) == ncclSuccess);
    CHECK(sum_of_ranks(self, other) == 1);
    CHECK(ncclCommDestroy(other) == ncclSuccess);
  });
}

TEST_CASE("several roots share the work of one init") {
  std::vector<ncclUniqueId> ids(2);
  for (ncclUniqueId& id : ids)
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  threads.reserve(5);
  for (int r = 0; r < 5; ++r) {
    threads.emplace_back([&, r] {
      cudaSetDevice(r);
      Rank self{r, 5};
      CHECK(ncclCommInitRankScalable(&self.comm, 5, r, 2, ids.data(), nullptr) == ncclSuccess);
      CHECK(sum_of_ranks(self, self.comm) == 10);
      CHECK(ncclCommDestroy(self.comm) == ncclSuccess);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_CASE("all communicators of one process at once, used in one group") {
  std::vector<ncclComm_t> comms(3);
  REQUIRE(ncclCommInitAll(comms.data(), 3, nullptr) == ncclSuccess);
  std::vector<Rank> ranks(3);
  std::vector<int*> memory(3);
  ncclGroupStart();
  for (int r = 0; r < 3; ++r) {
    auto at = static_cast<size_t>(r);
    cudaSetDevice(r);
    cudaStreamCreate(&ranks[at].stream);
    memory[at] = ranks[at].device(std::vector<int>{r});
    ncclAllReduce(memory[at], memory[at], 1, ncclInt, ncclSum, comms[at], ranks[at].stream);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  for (size_t r = 0; r < 3; ++r) {
    cudaSetDevice(static_cast<int>(r));
    CHECK(ranks[r].values(memory[r], 1)[0] == 3);
    CHECK(ncclCommDestroy(comms[r]) == ncclSuccess);
    CHECK(cudaStreamDestroy(ranks[r].stream) == cudaSuccess);
  }
  cudaSetDevice(0);
}

TEST_CASE("two ranks on one GPU are refused by name") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  threads.reserve(5);
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      ncclComm_t comm = nullptr;
      CHECK(ncclCommInitRank(&comm, 2, id, r) == ncclInvalidUsage);
      CHECK(comm == nullptr);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(std::string(ncclGetLastError(nullptr)).find("Duplicate GPU detected") == 0);
}

TEST_CASE("an init whose peers never come is ended by abort") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(ncclCommAbort(comm) == ncclSuccess);
}

TEST_CASE("registered memory is the device's, and known until it is given back") {
  in_threads(1, [](Rank& self) {
    int* memory = self.device(std::vector<int>{1, 2});
    int on_host = 0;
    void* handle = nullptr;
    CHECK(ncclCommRegister(self.comm, &on_host, sizeof on_host, &handle) == ncclInvalidArgument);
    CHECK(ncclCommRegister(self.comm, memory, 2 * sizeof(int), &handle) == ncclSuccess);
    CHECK(ncclCommDeregister(self.comm, handle) == ncclSuccess);
    CHECK(ncclCommDeregister(self.comm, handle) == ncclInvalidArgument);
  });
}

TEST_CASE("abort ends a kernel that waits for a peer") {
  in_threads(2, [](Rank& self) {
    CHECK(sum_of_ranks(self, self.comm) == 1);
    if (self.rank == 1) return;
    int* memory = self.device(std::vector<int>{1});
    CHECK(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, self.comm, self.stream) ==
          ncclSuccess);
    CHECK(ncclCommAbort(self.comm) == ncclSuccess);
    self.comm = nullptr;
    CHECK(cudaStreamSynchronize(self.stream) == cudaSuccess);
  });
}

TEST_CASE("a peer that has gone is a remote error, and the kernel hangs on until abort") {
  in_threads(2, [](Rank& self) {
    CHECK(sum_of_ranks(self, self.comm) == 1);
    if (self.rank == 1) return;
    int* memory = self.device(std::vector<int>{1});
    ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, self.comm, self.stream);
    auto end = std::chrono::steady_clock::now() + kPatience;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
      ncclCommGetAsyncError(self.comm, &state);
    }
    CHECK(state == ncclRemoteError);
    CHECK(cudaStreamQuery(self.stream) == cudaErrorNotReady);
    CHECK(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, self.comm, self.stream) ==
          ncclRemoteError);
    CHECK(ncclCommAbort(self.comm) == ncclSuccess);
    self.comm = nullptr;
    CHECK(cudaStreamSynchronize(self.stream) == cudaSuccess);
  });
}
