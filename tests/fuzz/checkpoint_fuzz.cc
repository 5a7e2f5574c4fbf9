// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "nccl/train/manifest.h"
#include "nccl/train/tensor_format.h"

// The first byte chooses what a checkpoint's file is taken for: 'm' a manifest, otherwise the
// header of a tensor file with so many bytes of numbers. What is accepted must be safe to use.

using namespace muster::train::detail;

namespace {

void require(bool good) {
  if (!good) std::abort();
}

void header(std::string_view json, uint64_t data_bytes) {
  const auto parsed = parse_header(json, data_bytes, "file");
  if (!parsed) return;
  uint64_t end = 0;
  for (const Entry& entry : parsed->entries) {
    require(entry.begin == end && entry.end >= entry.begin && entry.end <= data_bytes);
    end = entry.end;
    if (!entry.type) continue;
    uint64_t bytes = size_of(*entry.type);
    for (const int64_t size : entry.shape)
      bytes *= static_cast<uint64_t>(size);
    require(bytes == entry.end - entry.begin);
  }
  require(end == data_bytes);
}

void manifest(const std::string& json) {
  const auto parsed = parse_manifest(json, "file");
  if (!parsed) return;
  for (const Shard& shard : parsed->shards) {
    require(shard.file.find('/') == std::string::npos);
    require(generation_of(shard.file).has_value());
  }
  const auto again = parse_manifest(to_json(*parsed), "file");
  require(again.has_value() && again->shards.size() == parsed->shards.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'm') {
    manifest(std::string(rest));
  } else {
    header(rest, data[0]);
  }
  return 0;
}
