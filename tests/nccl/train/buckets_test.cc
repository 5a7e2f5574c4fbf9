// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/buckets.h>

#include <string>
#include <vector>

using muster::comm::Buffer;
using muster::comm::DataType;
using muster::train::Bucket;
using muster::train::NamedTensor;
using muster::train::plan_buckets;
using Members = std::vector<std::vector<size_t>>;

namespace {

// Parameters of so many elements; the plan looks at no memory.
std::vector<NamedTensor> parameters(const std::vector<size_t>& counts,
                                    DataType type = DataType::kFloat32) {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::vector<int64_t> shape{static_cast<int64_t>(counts[i])};
    all.emplace_back("p" + std::to_string(i), shape, Buffer(nullptr, counts[i], type));
  }
  return all;
}

Members members(const std::vector<Bucket>& buckets) {
  Members all;
  for (const Bucket& bucket : buckets)
    all.push_back(bucket.parameters);
  return all;
}

}  // namespace

TEST_CASE("buckets go from the last parameter to the first") {
  CHECK(members(plan_buckets(parameters({4, 4, 4}))) == Members{{2, 1, 0}});
}

TEST_CASE("the first bucket is smaller than the others") {
  const auto buckets = plan_buckets(parameters({10, 10, 10, 10, 10}), {40, 80});
  CHECK(members(buckets) == Members{{4}, {3, 2}, {1, 0}});
}

TEST_CASE("the gradient that fills a bucket still belongs to it") {
  const auto buckets = plan_buckets(parameters({1000, 3, 1000}), {4, 16});
  CHECK(members(buckets) == Members{{2}, {1, 0}});
}

TEST_CASE("the default sizes are 1 MiB and then 25 MiB") {
  const size_t mib = (1 << 20) / sizeof(float);
  const auto buckets = plan_buckets(parameters({mib, 20 * mib, 5 * mib, mib - 1, 1}));
  CHECK(members(buckets) == Members{{4, 3}, {2, 1}, {0}});
}

TEST_CASE("types are apart, and the bucket that is complete first is first") {
  auto all = parameters({8, 8, 8, 8});
  all[1].data.type = DataType::kFloat64;
  all[3].data.type = DataType::kFloat64;
  CHECK(members(plan_buckets(all)) == Members{{3, 1}, {2, 0}});
  // A double's bucket that is full before the floats' one, although it was begun later.
  all[3].data.type = DataType::kFloat32;
  CHECK(members(plan_buckets(all, {64, 64})) == Members{{3, 2}, {1}, {0}});
}

TEST_CASE("gradients begin at multiples of 16 bytes and do not overlap") {
  const auto buckets = plan_buckets(parameters({5, 1, 3}));
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].offsets == std::vector<size_t>{0, 4, 8});
  CHECK(buckets[0].count == 16);
  const auto halves = plan_buckets(parameters({5, 1, 3}, DataType::kFloat16));
  CHECK(halves[0].offsets == std::vector<size_t>{0, 8, 16});
}

TEST_CASE("each parameter is in one bucket once") {
  std::vector<size_t> counts;
  for (size_t i = 0; i < 100; ++i)
    counts.push_back(i * 37 % 101);
  auto all = parameters(counts);
  for (size_t i = 0; i < all.size(); i += 3)
    all[i].data.type = DataType::kBfloat16;
  std::vector<int> seen(all.size(), 0);
  for (const Bucket& bucket : plan_buckets(all, {100, 700})) {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const size_t parameter = bucket.parameters[i];
      ++seen[parameter];
      CHECK(all[parameter].data.type == bucket.type);
      CHECK(bucket.offsets[i] + counts[parameter] <= bucket.count);
    }
  }
  CHECK(seen == std::vector<int>(all.size(), 1));
}
