// SPDX-License-Identifier: Apache-2.0
#include <muster/train/checkpoint.h>

#include "nccl/train/agree.h"
#include "nccl/train/crc32.h"
#include "nccl/train/tensor_io.h"

namespace muster::train {

namespace {

using comm::Communicator;
using comm::Error;
using comm::ErrorCode;
using comm::Result;

// What a rank finds at the path, to be compared: "" for nothing there, otherwise the file's size
// and its header's checksum, which covers that of the numbers.
Result<std::string> fingerprint(const std::string& path,
                                std::optional<detail::TensorReader>& reader) {
  const Result<bool> there = detail::exists(path);
  if (!there) return there.error();
  if (!*there) return std::string();
  Result<detail::TensorReader> opened = detail::TensorReader::open(path);
  if (!opened) return opened.error();
  reader = *std::move(opened);
  return std::to_string(reader->bytes()) + " bytes, header " +
         detail::crc32_text(reader->header_crc());
}

Result<void> compare(const std::string& path, const Result<std::string>& mine,
                     const std::string& rank_0s) {
  if (!mine) return mine.error();
  if (*mine == rank_0s) return {};
  const auto shown = [](const std::string& found) { return found.empty() ? "none" : found; };
  return Error{ErrorCode::kMismatch, "checkpoint: " + path + " is not the same file here (" +
                                         shown(*mine) + ") as for rank 0 (" + shown(rank_0s) +
                                         "); it must be on a file system that all ranks share"};
}

}  // namespace

Result<void> save_checkpoint(Communicator& communicator, const std::string& path,
                             std::span<const NamedTensor> tensors, const Metadata& metadata) {
  Result<void> done;
  if (communicator.rank() == 0) done = write_tensors(path, tensors, metadata);
  return detail::agree(communicator, done);
}

Result<std::optional<Metadata>> load_checkpoint(Communicator& communicator, const std::string& path,
                                                std::span<const NamedTensor> tensors) {
  std::optional<detail::TensorReader> reader;
  Result<void> good = detail::check_tensors(tensors);
  const Result<std::string> mine = fingerprint(path, reader);
  const Result<std::string> rank_0s = detail::share(communicator, mine ? *mine : "");
  if (!rank_0s) return rank_0s.error();
  if (good) good = compare(path, mine, *rank_0s);
  if (good && reader) good = reader->read_into(tensors);
  good = detail::agree(communicator, good);
  if (!good) return good.error();
  if (!reader) return std::optional<Metadata>();
  return std::optional<Metadata>(reader->header().metadata);
}

}  // namespace muster::train
