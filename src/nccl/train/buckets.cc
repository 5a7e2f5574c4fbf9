// SPDX-License-Identifier: Apache-2.0
#include <muster/train/buckets.h>

#include <array>
#include <utility>

namespace muster::train {

namespace {

size_t align(size_t elements, size_t element_bytes) {
  const size_t step = kGradientAlignment / element_bytes;
  return (elements + step - 1) / step * step;
}

struct Open {
  Bucket bucket{};
  size_t bytes = 0;  // of the gradients alone
  bool first = true;
};

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const NamedTensor> parameters, BucketOptions options) {
  std::vector<Bucket> buckets;
  std::array<Open, comm::kDataTypes> open;
  const auto close = [&buckets](Open& one) {
    one.first = false;
    one.bytes = 0;
    buckets.push_back(std::exchange(one.bucket, {}));
  };
  for (size_t i = parameters.size(); i-- > 0;) {
    const comm::Buffer& data = parameters[i].data;
    Open& one = open[static_cast<size_t>(data.type)];
    one.bucket.type = data.type;
    one.bucket.parameters.push_back(i);
    one.bucket.offsets.push_back(one.bucket.count);
    one.bucket.count = align(one.bucket.count + data.count, size_of(data.type));
    one.bytes += data.bytes();
    if (one.bytes >= (one.first ? options.first_bytes : options.bytes)) close(one);
  }
  // Those that never became full, again by which is complete first.
  while (true) {
    Open* next = nullptr;
    for (Open& one : open) {
      if (one.bucket.parameters.empty()) continue;
      if (next == nullptr || one.bucket.parameters.back() > next->bucket.parameters.back()) {
        next = &one;
      }
    }
    if (next == nullptr) return buckets;
    close(*next);
  }
}

}  // namespace muster::train
