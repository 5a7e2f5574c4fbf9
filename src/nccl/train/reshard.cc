// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/reshard.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "nccl/train/agree.h"
#include "nccl/train/crc32.h"

// A flat tensor that was cut among some ranks is one row of elements; the shards hold it piece by
// piece, in the order of the ranks. Each rank of now wants one stretch of that row, and reads those
// parts of the shards that overlap it.

namespace muster::train::detail {

namespace {

using comm::Communicator;
using comm::Error;
using comm::ErrorCode;
using comm::Result;

struct Stretch {  // in bytes of the row
  uint64_t begin = 0;
  uint64_t end = 0;
};

const Entry* find(const TensorReader& reader, const std::string& name) {
  for (const Entry& entry : reader.header().entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Error cannot(const NamedTensor& tensor, const std::string& why) {
  return {ErrorCode::kMismatch, "checkpoint: tensor '" + tensor.name + "' " + why};
}

// The same names in all shards and in the program, all of them flat.
Result<void> check_flat(const std::vector<TensorReader>& shards, const Manifest& manifest,
                        std::span<const NamedTensor> tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.shape.size() != 1) return cannot(tensor, "is not flat, so it cannot be cut anew");
    for (size_t i = 0; i < shards.size(); ++i) {
      const Entry* entry = find(shards[i], tensor.name);
      if (entry == nullptr) return cannot(tensor, "is missing in " + manifest.shards[i].file);
      if (entry->type != tensor.data.type || entry->shape.size() != 1) {
        return cannot(tensor, "is " + describe(entry->dtype, entry->shape) + " in " +
                                  manifest.shards[i].file + ", the program's is " +
                                  describe(dtype_of(tensor.data.type), tensor.shape));
      }
    }
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].header().entries.size() != tensors.size()) {
      return Error{ErrorCode::kMismatch, "checkpoint: " + manifest.shards[i].file +
                                             " has tensors that are not the program's"};
    }
  }
  return {};
}

// Reads what of `wanted` the shards have into `data`, which begins at wanted.begin; the rest stays.
// Returns where the row ends.
Result<uint64_t> read_stretch(const std::vector<TensorReader>& shards, const std::string& name,
                              Stretch wanted, std::byte* data) {
  uint64_t begin = 0;
  for (const TensorReader& shard : shards) {
    const Entry& entry = *find(shard, name);
    const uint64_t end = begin + (entry.end - entry.begin);
    const uint64_t from = std::max(begin, wanted.begin);
    const uint64_t to = std::min(end, wanted.end);
    if (from < to) {
      const Result<void> done =
          shard.read(entry, from - begin, data + (from - wanted.begin), to - from);
      if (!done) return done.error();
    }
    begin = end;
  }
  return begin;
}

// What was saved beyond the end of what is asked for may only be padding.
Result<void> check_rest(const std::vector<TensorReader>& shards, const NamedTensor& tensor,
                        uint64_t asked, uint64_t saved) {
  if (saved <= asked) return {};
  std::vector<std::byte> rest(saved - asked);
  const auto done = read_stretch(shards, tensor.name, {asked, saved}, rest.data());
  if (!done) return done.error();
  if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return {};
  }
  const size_t element = size_of(tensor.data.type);
  return cannot(tensor, "was saved with " + std::to_string(saved / element) +
                            " elements, and what is beyond the " + std::to_string(asked / element) +
                            " asked for is not padding");
}

Result<void> fill(const std::vector<TensorReader>& shards, const NamedTensor& tensor, Stretch mine,
                  uint64_t asked) {
  auto* data = static_cast<std::byte*>(tensor.data.data);
  if (tensor.data.count > 0) std::memset(data, 0, tensor.data.bytes());
  const auto saved = read_stretch(shards, tensor.name, mine, data);
  if (!saved) return saved.error();
  return check_rest(shards, tensor, asked, *saved);
}

Result<std::vector<TensorReader>> open_all(const std::string& folder, const Manifest& manifest) {
  std::vector<TensorReader> shards;
  for (const Shard& shard : manifest.shards) {
    Result<TensorReader> reader = open_shard(folder, shard);
    if (!reader) return reader.error();
    shards.push_back(*std::move(reader));
  }
  return shards;
}

}  // namespace

Result<TensorReader> open_shard(const std::string& folder, const Shard& shard) {
  const std::string path = folder + "/" + shard.file;
  const Result<bool> there = exists(path);
  if (!there) return there.error();
  if (!*there) return bad_file(path, "this shard is missing, though the manifest names it");
  Result<TensorReader> reader = TensorReader::open(path);
  if (!reader) return reader;
  if (reader->bytes() != shard.bytes || crc32_text(reader->header_crc()) != shard.header_crc32) {
    return bad_file(path, "this shard is not the one that the manifest describes");
  }
  return reader;
}

Result<void> load_resharded(Communicator& communicator, const std::string& folder,
                            const Manifest& manifest, std::span<const NamedTensor> tensors) {
  const Result<std::vector<TensorReader>> shards = open_all(folder, manifest);
  Result<void> good = shards ? check_flat(*shards, manifest, tensors) : shards.error();
  // Each shard's checksum is looked at by one rank: nobody reads them all.
  const auto ranks = static_cast<size_t>(communicator.size());
  const auto rank = static_cast<size_t>(communicator.rank());
  for (size_t i = rank; good && i < shards->size(); i += ranks)
    good = (*shards)[i].verify();
  good = agree(communicator, good);
  if (!good) return good;

  // All have the same tensors now, but not in the same order: shard 0's decides.
  std::vector<const NamedTensor*> ordered;
  for (const Entry& entry : shards->front().header().entries) {
    for (const NamedTensor& tensor : tensors) {
      if (tensor.name == entry.name) ordered.push_back(&tensor);
    }
  }
  std::vector<uint64_t> mine;
  mine.reserve(ordered.size());
  for (const NamedTensor* tensor : ordered)
    mine.push_back(tensor->data.bytes());
  std::vector<uint64_t> all(mine.size() * ranks);
  good = communicator.all_gather(mine, all).wait();
  if (!good) return good;
  for (size_t i = 0; good && i < ordered.size(); ++i) {
    uint64_t before = 0;
    uint64_t asked = 0;
    for (size_t r = 0; r < ranks; ++r) {
      if (r == rank) before = asked;
      asked += all[r * ordered.size() + i];
    }
    good = fill(*shards, *ordered[i], {before, before + mine[i]}, asked);
  }
  return agree(communicator, good);
}

}  // namespace muster::train::detail
