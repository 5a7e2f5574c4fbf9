// SPDX-License-Identifier: Apache-2.0
#include <muster/train/sampler.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>

// Fisher and Yates' shuffle on the 32-bit Mersenne Twister, with the draws in the order in which
// PyTorch makes them: a permutation is only the same if every draw is.

namespace muster::train {

namespace {

// From here on 32 random bits modulo n would be visibly uneven.
constexpr int64_t kLargePermutation = 4294967295 / 20;

void shuffle_small(std::vector<int64_t>& order, std::mt19937& random) {
  const auto n = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < n - 1; ++i) {
    const int64_t other = i + static_cast<int64_t>(random()) % (n - i);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(other)]);
  }
}

void shuffle_large(std::vector<int64_t>& order, std::mt19937& random) {
  for (uint64_t i = 0; i < order.size(); ++i) {
    const uint64_t high = random();
    const uint64_t other = (high << 32 | random()) % (i + 1);
    std::swap(order[i], order[other]);
  }
}

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

int64_t samples_of_each(int64_t dataset_size, int replicas, bool drop_last) {
  return drop_last ? dataset_size / replicas : divide_up(dataset_size, replicas);
}

}  // namespace

std::vector<int64_t> random_permutation(int64_t n, int64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(static_cast<uint32_t>(seed));
  if (n < kLargePermutation) {
    shuffle_small(order, random);
  } else {
    shuffle_large(order, random);
  }
  return order;
}

comm::Result<DistributedSampler> DistributedSampler::make(int64_t dataset_size, int replicas,
                                                          int rank, SamplerOptions options) {
  std::string wrong;
  if (dataset_size < 0) wrong = "a dataset of " + std::to_string(dataset_size) + " samples";
  if (replicas < 1) wrong = std::to_string(replicas) + " replicas";
  if (wrong.empty() && (rank < 0 || rank >= replicas)) {
    wrong = "rank " + std::to_string(rank) + " of " + std::to_string(replicas) + " replicas";
  }
  if (!wrong.empty()) {
    return comm::Error{comm::ErrorCode::kInvalidArgument, "sampler: there cannot be " + wrong};
  }
  return DistributedSampler(dataset_size, replicas, rank, options);
}

DistributedSampler::DistributedSampler(int64_t dataset_size, int replicas, int rank,
                                       SamplerOptions options)
    : dataset_size_(dataset_size),
      replicas_(replicas),
      rank_(rank),
      options_(options),
      samples_(samples_of_each(dataset_size, replicas, options.drop_last)) {}

std::vector<int64_t> DistributedSampler::indices() const {
  std::vector<int64_t> order;
  if (options_.shuffle) {
    const auto seed = static_cast<uint64_t>(options_.seed) + static_cast<uint64_t>(epoch_);
    order = random_permutation(dataset_size_, static_cast<int64_t>(seed));
  } else {
    order.resize(static_cast<size_t>(dataset_size_));
    std::iota(order.begin(), order.end(), 0);
  }
  // What is missing for equal parts is taken from the beginning again, several times round if the
  // dataset is smaller than the number of ranks.
  std::vector<int64_t> mine;
  mine.reserve(static_cast<size_t>(samples_));
  for (int64_t i = 0; i < samples_; ++i) {
    const int64_t place = rank_ + i * replicas_;
    mine.push_back(order[static_cast<size_t>(place % dataset_size_)]);
  }
  return mine;
}

}  // namespace muster::train
