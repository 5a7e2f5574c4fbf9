// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/checkpoint.h>

// The checkpoint of a job whose ranks each hold a part of the state, as a folder:
//
//   manifest.json                     what belongs to it; written last, replaced in one step
//   shard-<generation>-<rank>.safetensors     what rank <rank> saved, a file of write_tensors()
//
//   {"format": "muster-sharded-checkpoint", "version": 1, "generation": 3, "metadata": {...},
//    "shards": [{"file": "...", "bytes": 1234, "header_crc32": "89abcdef"}, ...]}
//
// Shards are listed by rank. header_crc32 is that of the file's length and header, which hold the
// checksum of the rest. Each save writes shards of a new generation beside the old ones, which are
// removed once the manifest names the new ones: whatever is killed when, the manifest names a
// complete set. Shards without a manifest are a first save that did not end, so nothing.
//
// All functions are called by all ranks of a communicator for host memory, and all get the same
// error. Its codes are those of checkpoint.h; a shard that is missing, torn or altered is named.
namespace muster::train {

// The folder is made if it is not there.
comm::Result<void> save_sharded(comm::Communicator& communicator, const std::string& folder,
                                std::span<const NamedTensor> tensors,
                                const Metadata& metadata = {});

struct ShardedLoadOptions {
  // What to do where another number of ranks saved it. false: refuse (kMismatch). true: each tensor
  // must be flat (one dimension) and counts as cut into the ranks' parts, in their order; each rank
  // then gets its part of the whole by the counts that the ranks now ask for. What is asked for
  // beyond the saved end becomes zero, and what is not asked for there must be zero: the padding
  // that makes a tensor divide by the number of ranks.
  bool reshard = false;
};

// Each rank loads its own shard, from a file system that all share. No value where there is nothing
// yet. The metadata is that of rank 0 at the save.
comm::Result<std::optional<Metadata>> load_sharded(comm::Communicator& communicator,
                                                   const std::string& folder,
                                                   std::span<const NamedTensor> tensors,
                                                   ShardedLoadOptions options = {});

}  // namespace muster::train
