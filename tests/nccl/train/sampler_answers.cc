// SPDX-License-Identifier: Apache-2.0
#include <muster/train/sampler.h>

#include <iostream>
#include <string>
#include <vector>

// Each line of stdin is a question, "permutation <n> <seed>" or "sampler <size> <replicas> <rank>
// <shuffle> <seed> <drop_last> <epoch>"; each line of stdout the answer, numbers apart by blanks.

namespace mt = muster::train;

namespace {

std::vector<int64_t> sampler() {
  int64_t size = 0;
  int replicas = 0;
  int rank = 0;
  int64_t epoch = 0;
  mt::SamplerOptions options;
  std::cin >> size >> replicas >> rank >> options.shuffle >> options.seed >> options.drop_last >>
      epoch;
  mt::DistributedSampler made = mt::DistributedSampler::make(size, replicas, rank, options).value();
  made.set_epoch(epoch);
  std::vector<int64_t> indices = made.indices();
  if (made.size() != static_cast<int64_t>(indices.size())) indices = {-1};
  return indices;
}

std::vector<int64_t> permutation() {
  int64_t n = 0;
  int64_t seed = 0;
  std::cin >> n >> seed;
  return mt::random_permutation(n, seed);
}

}  // namespace

int main() {
  for (std::string kind; std::cin >> kind;) {
    const std::vector<int64_t> numbers = kind == "sampler" ? sampler() : permutation();
    for (const int64_t number : numbers)
      std::cout << number << ' ';
    std::cout << '\n';
  }
}
