// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <span>
#include <string>

#include "nccl/train/manifest.h"
#include "nccl/train/tensor_io.h"

namespace muster::train::detail {

// The shard as the manifest describes it, otherwise an error that names it.
comm::Result<TensorReader> open_shard(const std::string& folder, const Shard& shard);

// Fills flat tensors from the shards of another number of ranks (ShardedLoadOptions::reshard).
// Called by all ranks, which get the same answer.
comm::Result<void> load_resharded(comm::Communicator& communicator, const std::string& folder,
                                  const Manifest& manifest, std::span<const NamedTensor> tensors);

}  // namespace muster::train::detail
