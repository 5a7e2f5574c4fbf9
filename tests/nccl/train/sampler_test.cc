// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/sampler.h>

#include <algorithm>
#include <numeric>
#include <vector>

// Whether the answers are PyTorch's is sampler_test.py's business.

using muster::train::DistributedSampler;
using muster::train::random_permutation;
using muster::train::SamplerOptions;
using Indices = std::vector<int64_t>;

namespace {

Indices of(int64_t size, int replicas, int rank, SamplerOptions options, int64_t epoch = 0) {
  DistributedSampler sampler = DistributedSampler::make(size, replicas, rank, options).value();
  sampler.set_epoch(epoch);
  return sampler.indices();
}

constexpr SamplerOptions kInOrder{false, 0, false};
constexpr SamplerOptions kDropLast{false, 0, true};

}  // namespace

TEST_CASE("a permutation has each number once, and a seed has one permutation") {
  Indices numbers = random_permutation(1000, 7);
  CHECK(numbers == random_permutation(1000, 7));
  CHECK(numbers != random_permutation(1000, 8));
  std::sort(numbers.begin(), numbers.end());
  Indices expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(numbers == expected);
  CHECK(random_permutation(0, 1).empty());
  CHECK(random_permutation(-3, 1).empty());
}

TEST_CASE("what is missing for equal parts begins again at the first sample") {
  CHECK(of(5, 2, 0, kInOrder) == Indices{0, 2, 4});
  CHECK(of(5, 2, 1, kInOrder) == Indices{1, 3, 0});
}

TEST_CASE("a dataset smaller than the ranks goes round several times") {
  CHECK(of(2, 5, 4, kInOrder) == Indices{0});
  CHECK(of(2, 5, 3, kInOrder) == Indices{1});
}

TEST_CASE("drop_last leaves the rest out") {
  CHECK(of(5, 2, 1, kDropLast) == Indices{1, 3});
  CHECK(of(3, 4, 0, kDropLast).empty());
}

TEST_CASE("an empty dataset gives nobody anything") {
  CHECK(of(0, 3, 2, {}).empty());
  CHECK(of(0, 3, 2, {true, 0, true}).empty());
}

TEST_CASE("the ranks' batches together are one process's batch") {
  const Indices whole = of(60, 1, 0, {true, 3, false}, 2);
  for (int rank = 0; rank < 4; ++rank) {
    const Indices mine = of(60, 4, rank, {true, 3, false}, 2);
    REQUIRE(mine.size() == 15);
    for (size_t i = 0; i < mine.size(); ++i) {
      CHECK(mine[i] == whole[4 * i + static_cast<size_t>(rank)]);
    }
  }
}

TEST_CASE("an epoch is a seed further on") {
  CHECK(of(50, 2, 0, {true, 3, false}, 4) == of(50, 2, 0, {true, 7, false}, 0));
  CHECK(of(50, 2, 0, {true, 3, false}, 4) != of(50, 2, 0, {true, 3, false}, 5));
}

TEST_CASE("numbers that cannot be are refused by name") {
  CHECK(DistributedSampler::make(-1, 2, 0).error().message ==
        "sampler: there cannot be a dataset of -1 samples");
  CHECK(DistributedSampler::make(5, 0, 0).error().message == "sampler: there cannot be 0 replicas");
  CHECK(DistributedSampler::make(5, 2, 2).error().message ==
        "sampler: there cannot be rank 2 of 2 replicas");
  CHECK(DistributedSampler::make(5, 2, -1).error().code ==
        muster::comm::ErrorCode::kInvalidArgument);
}
