// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/checkpoint.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::train::detail {

constexpr uint64_t kMaxManifest = 100'000'000;

struct Shard {
  std::string file{};  // in the manifest's folder
  uint64_t bytes = 0;
  std::string header_crc32{};
};

// What belongs to a sharded checkpoint. Pure.
struct Manifest {
  int64_t generation = 0;
  std::vector<Shard> shards{};  // by rank
  Metadata metadata{};
};

std::string to_json(const Manifest& manifest);
comm::Result<Manifest> parse_manifest(const std::string& json, const std::string& path);

std::string shard_name(int64_t generation, int rank);
// The generation of a file that is named like a shard, whole or partial.
std::optional<int64_t> generation_of(const std::string& name);

}  // namespace muster::train::detail
