// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <cstdint>
#include <vector>

namespace muster::train {

// The numbers 0 to n - 1 in random order: what torch.randperm(n) gives for a CPU generator with
// this seed, so that a C++ and a Python program can visit the same samples. Only the seed's low 32
// bits count, as there. For 214,748,364 numbers and more PyTorch 2.14 draws 64 bits a number, and
// 1.13 still 32; this does as 2.14. n <= 0: none.
std::vector<int64_t> random_permutation(int64_t n, int64_t seed);

struct SamplerOptions {
  bool shuffle = true;
  int64_t seed = 0;  // the same on every rank
  // A dataset that does not divide: leave the rest out, instead of using some samples twice.
  bool drop_last = false;
};

// Which samples of a dataset are this rank's: torch.utils.data.DistributedSampler, with the same
// answer for the same numbers. Each rank takes every size-th of the (shuffled) samples, so that
// batch b of all ranks together is batch b of one process with a batch that is size times larger.
// All ranks get equally many. A value: copy it as you like.
class DistributedSampler {
 public:
  // kInvalidArgument: a negative dataset size, no replicas, a rank that is not one of them.
  static comm::Result<DistributedSampler> make(int64_t dataset_size, int replicas, int rank,
                                               SamplerOptions options = {});
  // For the ranks of `communicator`. A negative size counts as none.
  DistributedSampler(int64_t dataset_size, const comm::Communicator& communicator,
                     SamplerOptions options = {})
      : DistributedSampler(dataset_size < 0 ? 0 : dataset_size, communicator.size(),
                           communicator.rank(), options) {}

  // Call it before each epoch, otherwise each has the same order: the order's seed is seed + epoch.
  void set_epoch(int64_t epoch) { epoch_ = epoch; }

  // Samples of one rank in an epoch.
  int64_t size() const { return samples_; }

  // This rank's samples of the epoch, in the order in which they are to be visited.
  std::vector<int64_t> indices() const;

 private:
  DistributedSampler(int64_t dataset_size, int replicas, int rank, SamplerOptions options);

  int64_t dataset_size_;
  int replicas_;
  int rank_;
  SamplerOptions options_;
  int64_t epoch_ = 0;
  int64_t samples_;
};

}  // namespace muster::train
