// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <numeric>

#include "in_threads.h"

using namespace doubles::test;

namespace {

constexpr int kRanks = 3;
constexpr size_t kCount = 5;

// 10 * rank + index.
std::vector<int> numbers(int rank, size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 10 * rank);
  return values;
}

}  // namespace

TEST_CASE("all_reduce: each rank gets each operation of all, in place or not") {
  in_threads(kRanks, [](Rank& self) {
    auto reduced = [&](ncclRedOp_t op) {
      int* in = self.device(numbers(self.rank, kCount));
      int* out = self.device(std::vector<int>(kCount));
      CHECK(ncclAllReduce(in, out, kCount, ncclInt, op, self.comm, self.stream) == ncclSuccess);
      CHECK(ncclAllReduce(in, in, kCount, ncclInt, op, self.comm, self.stream) == ncclSuccess);
      CHECK(self.values(in, kCount) == self.values(out, kCount));
      return self.values(out, kCount)[2];
    };
    CHECK(reduced(ncclSum) == 2 + 12 + 22);
    CHECK(reduced(ncclProd) == 2 * 12 * 22);
    CHECK(reduced(ncclMin) == 2);
    CHECK(reduced(ncclMax) == 22);
    CHECK(reduced(ncclAvg) == 12);
  });
}

TEST_CASE("small floats are reduced and averaged, and multiplied first where that is asked") {
  in_threads(2, [](Rank& self) {
    __half* half = self.device(std::vector<__half>{__float2half(1.5F + self.rank)});
    CHECK(ncclAllReduce(half, half, 1, ncclHalf, ncclAvg, self.comm, self.stream) == ncclSuccess);
    CHECK(__half2float(self.values(half, 1)[0]) == 2.0F);
    auto* bf16 = self.device(std::vector<__nv_bfloat16>{__float2bfloat16(-1.0F - self.rank)});
    CHECK(ncclAllReduce(bf16, bf16, 1, ncclBfloat16, ncclMin, self.comm, self.stream) ==
          ncclSuccess);
    CHECK(__bfloat162float(self.values(bf16, 1)[0]) == -2.0F);
    double factor = self.rank == 0 ? 10 : 100;
    ncclRedOp_t op = ncclSum;
    CHECK(ncclRedOpCreatePreMulSum(&op, &factor, ncclDouble, ncclScalarHostImmediate, self.comm) ==
          ncclSuccess);
    double* numbers = self.device(std::vector<double>{2.5});
    CHECK(ncclAllReduce(numbers, numbers, 1, ncclDouble, op, self.comm, self.stream) ==
          ncclSuccess);
    CHECK(self.values(numbers, 1)[0] == 275);
    CHECK(ncclRedOpDestroy(op, self.comm) == ncclSuccess);
    CHECK(ncclRedOpDestroy(op, self.comm) == ncclInvalidArgument);
  });
}

TEST_CASE("reduce, broadcast, gather and scatter: the root and the others") {
  in_threads(kRanks, [](Rank& self) {
    const int root = 1;
    int* in = self.device(numbers(self.rank, kCount));
    int* out = self.device(std::vector<int>(kCount, -1));
    ncclReduce(in, out, kCount, ncclInt, ncclSum, root, self.comm, self.stream);
    CHECK(self.values(out, kCount)[0] == (self.rank == root ? 30 : -1));
    ncclBroadcast(in, out, kCount, ncclInt, root, self.comm, self.stream);
    CHECK(self.values(out, kCount) == numbers(root, kCount));
    int* all = self.device(std::vector<int>(kRanks * kCount, -1));
    ncclGather(in, all, kCount, ncclInt, root, self.comm, self.stream);
    CHECK(self.values(all, kRanks * kCount).back() == (self.rank == root ? 24 : -1));
    ncclScatter(all, out, kCount, ncclInt, root, self.comm, self.stream);
    CHECK(self.values(out, kCount) == numbers(self.rank, kCount));
  });
}

TEST_CASE("all_gather, reduce_scatter and all_to_all: each rank's part") {
  in_threads(kRanks, [](Rank& self) {
    int* in = self.device(numbers(self.rank, kCount));
    int* all = self.device(std::vector<int>(kRanks * kCount));
    int* out = self.device(std::vector<int>(kRanks * kCount));
    ncclAllGather(in, all, kCount, ncclInt, self.comm, self.stream);
    for (int r = 0; r < kRanks; ++r) {
      CHECK(self.values(all + r * kCount, kCount) == numbers(r, kCount));
    }
    ncclReduceScatter(all, out, kCount, ncclInt, ncclSum, self.comm, self.stream);
    CHECK(self.values(out, kCount)[1] == kRanks * (10 * self.rank + 1));
    ncclAlltoAll(all, out, kCount, ncclInt, self.comm, self.stream);
    // Everybody had the same: each part is this rank's.
    CHECK(self.values(out + kCount, kCount) == numbers(self.rank, kCount));
  });
}

TEST_CASE("a group's sends and receives go on at the same time, to oneself too") {
  in_threads(kRanks, [](Rank& self) {
    const size_t big = 1 << 20;  // more than a socket takes
    int* in = self.device(std::vector<int>(big, self.rank));
    int* out = self.device(std::vector<int>(kRanks * big, -1));
    ncclGroupStart();
    for (int r = 0; r < kRanks; ++r) {
      ncclSend(in, big, ncclInt, r, self.comm, self.stream);
      ncclRecv(out + static_cast<size_t>(r) * big, big, ncclInt, r, self.comm, self.stream);
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      CHECK(self.values(out + static_cast<size_t>(r) * big, big) == std::vector<int>(big, r));
    }
  });
}

TEST_CASE("a wrong argument fails its call, or its whole group, and says why") {
  in_threads(1, [](Rank& self) {
    int* memory = self.device(std::vector<int>{7});
    CHECK(ncclBroadcast(memory, memory, 1, ncclInt, 5, self.comm, self.stream) ==
          ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(self.comm)).find("invalid root 5") != std::string::npos);
    ncclGroupStart();
    CHECK(ncclSend(memory, 1, ncclInt, -1, self.comm, self.stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, self.comm, self.stream) ==
          ncclSuccess);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
  });
}
