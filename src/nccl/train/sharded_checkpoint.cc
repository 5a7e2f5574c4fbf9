// SPDX-License-Identifier: Apache-2.0
#include <muster/train/sharded_checkpoint.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "nccl/train/agree.h"
#include "nccl/train/crc32.h"
#include "nccl/train/manifest.h"
#include "nccl/train/reshard.h"
#include "nccl/train/tensor_io.h"

namespace muster::train {

namespace {

using comm::Communicator;
using comm::Error;
using comm::ErrorCode;
using comm::Result;
using detail::Manifest;

std::string manifest_path(const std::string& folder) {
  return folder + "/manifest.json";
}

// "" where there is none.
Result<std::string> read_manifest(const std::string& folder) {
  const std::string path = manifest_path(folder);
  const Result<bool> there = detail::exists(path);
  if (!there) return there.error();
  if (!*there) return std::string();
  const Result<detail::File> file = detail::open_to_read(path);
  if (!file) return file.error();
  const Result<uint64_t> size = detail::size_of_file(*file, path);
  if (!size) return size.error();
  if (*size > detail::kMaxManifest) return detail::bad_file(path, "too long for a manifest");
  std::string text(*size, '\0');
  const Result<void> done = detail::read_at(*file, path, 0, text.data(), text.size());
  if (!done) return done.error();
  return text;
}

struct ShardFile {
  std::filesystem::path path;
  int64_t generation = 0;
};
// All that are named like shards.
Result<std::vector<ShardFile>> shard_files(const std::string& folder) {
  std::error_code code;
  std::vector<ShardFile> files;
  std::filesystem::directory_iterator at(folder, code);
  for (; !code && at != std::filesystem::directory_iterator(); at.increment(code)) {
    const auto generation = detail::generation_of(at->path().filename().string());
    if (generation) files.push_back({at->path(), *generation});
  }
  if (code) return detail::system_error("list", folder, code.value());
  return files;
}

// Rank 0: the folder is there, and this is the number of the save that begins.
Result<int64_t> next_generation(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return detail::system_error("make", folder, code.value());
  const Result<std::string> text = read_manifest(folder);
  if (!text) return text.error();
  // A manifest that cannot be read is replaced: it is of no use to anybody.
  int64_t generation = 0;
  if (!text->empty()) {
    const Result<Manifest> manifest = detail::parse_manifest(*text, manifest_path(folder));
    if (manifest) generation = manifest->generation;
  }
  // Nor may a shard of a save that did not end be taken for one of this.
  const Result<std::vector<ShardFile>> files = shard_files(folder);
  if (!files) return files.error();
  for (const ShardFile& file : *files)
    generation = std::max(generation, file.generation);
  return generation + 1;
}

// What is not named by the manifest any more. Failing here loses disk space, nothing else.
void remove_older(const std::string& folder, int64_t generation) {
  const Result<std::vector<ShardFile>> files = shard_files(folder);
  if (!files) return;
  std::error_code code;
  for (const ShardFile& file : *files) {
    if (file.generation != generation) std::filesystem::remove(file.path, code);
  }
}

Result<void> write_manifest(const std::string& folder, const Manifest& manifest) {
  Result<detail::AtomicFile> file = detail::AtomicFile::create(manifest_path(folder));
  if (!file) return file.error();
  const std::string text = to_json(manifest);
  Result<void> done = file->write(text.data(), text.size());
  if (done) done = file->commit();
  if (done) remove_older(folder, manifest.generation);
  return done;
}

Result<void> load_own(const std::string& folder, const detail::Shard& shard,
                      std::span<const NamedTensor> tensors) {
  const Result<detail::TensorReader> reader = detail::open_shard(folder, shard);
  if (!reader) return reader.error();
  return reader->read_into(tensors);
}

}  // namespace

Result<void> save_sharded(Communicator& communicator, const std::string& folder,
                          std::span<const NamedTensor> tensors, const Metadata& metadata) {
  Result<int64_t> generation = int64_t{0};
  if (communicator.rank() == 0) generation = next_generation(folder);
  Result<void> done = detail::agree(communicator, generation ? Result<void>() : generation.error());
  if (!done) return done;
  std::vector<int64_t> number = {*generation};
  done = communicator.broadcast(number, 0).wait();
  if (!done) return done;

  const std::string name = detail::shard_name(number[0], communicator.rank());
  const auto written = detail::write_tensor_file(folder + "/" + name, tensors, {});
  done = detail::agree(communicator, written ? Result<void>() : written.error());
  if (!done) return done;
  const std::vector<uint64_t> mine = {written->bytes, written->header_crc};
  std::vector<uint64_t> all(2 * static_cast<size_t>(communicator.size()));
  done = communicator.gather(mine, all, 0).wait();
  if (done && communicator.rank() == 0) {
    Manifest manifest{number[0], {}, metadata};
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const size_t at = 2 * static_cast<size_t>(rank);
      manifest.shards.push_back({detail::shard_name(number[0], rank), all[at],
                                 detail::crc32_text(static_cast<uint32_t>(all[at + 1]))});
    }
    done = write_manifest(folder, manifest);
  }
  return detail::agree(communicator, done);
}

Result<std::optional<Metadata>> load_sharded(Communicator& communicator, const std::string& folder,
                                             std::span<const NamedTensor> tensors,
                                             ShardedLoadOptions options) {
  Result<std::string> text = std::string();
  if (communicator.rank() == 0) text = read_manifest(folder);
  Result<void> good = detail::check_tensors(tensors);
  if (good && !text) good = text.error();
  good = detail::agree(communicator, good);
  if (!good) return good.error();
  text = detail::share(communicator, *text);
  if (!text) return text.error();
  if (text->empty()) return std::optional<Metadata>();
  const Result<Manifest> manifest = detail::parse_manifest(*text, manifest_path(folder));
  if (!manifest) return manifest.error();

  const auto ranks = static_cast<size_t>(communicator.size());
  if (manifest->shards.size() == ranks) {
    good = load_own(folder, manifest->shards[static_cast<size_t>(communicator.rank())], tensors);
    good = detail::agree(communicator, good);
  } else if (options.reshard) {
    good = detail::load_resharded(communicator, folder, *manifest, tensors);
  } else {
    good = Error{ErrorCode::kMismatch, "checkpoint: " + folder + " was saved by " +
                                           std::to_string(manifest->shards.size()) +
                                           " ranks, these are " + std::to_string(ranks) +
                                           "; flat tensors can be cut anew (reshard)"};
  }
  if (!good) return good.error();
  return std::optional<Metadata>(manifest->metadata);
}

}  // namespace muster::train
