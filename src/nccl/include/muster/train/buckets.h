// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/tensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace muster::train {

// A bucket is closed by the gradient that brings it to its size, so that it may be larger.
struct BucketOptions {
  // The first one is small: its all_reduce begins soon after the backward pass has. Bytes.
  size_t first_bytes = 1 << 20;
  size_t bytes = 25 << 20;
};

// Gradients of one type that lie in one piece of memory and are averaged by one all_reduce.
struct Bucket {
  comm::DataType type = comm::DataType::kFloat32;
  size_t count = 0;                  // elements, with the gaps that keep each gradient aligned
  std::vector<size_t> parameters{};  // in the order in which their gradients are expected
  std::vector<size_t> offsets{};     // elements; of `parameters`, in their order
};

constexpr size_t kGradientAlignment = 16;  // bytes: what vector loads of CPUs and GPUs like

// Puts gradients into buckets in the reverse order of the parameters, as the backward pass makes
// them. Types are apart; buckets are in the order in which they are expected to be complete.
std::vector<Bucket> plan_buckets(std::span<const NamedTensor> parameters,
                                 BucketOptions options = {});

}  // namespace muster::train
