// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "nccl/train/files.h"
#include "nccl/train/tensor_format.h"

namespace muster::train::detail {

// What was written, for a manifest.
struct WrittenFile {
  uint64_t bytes = 0;
  uint32_t header_crc = 0;  // of the length and the header
};
comm::Result<WrittenFile> write_tensor_file(const std::string& path,
                                            std::span<const NamedTensor> tensors,
                                            const Metadata& metadata);

// A tensor file that is open, its header read and checked.
class TensorReader {
 public:
  static comm::Result<TensorReader> open(const std::string& path);

  const Header& header() const { return header_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t header_crc() const { return header_crc_; }

  // All tensors into the program's, and the checksum.
  comm::Result<void> read_into(std::span<const NamedTensor> tensors) const;
  // The checksum alone, in pieces.
  comm::Result<void> verify() const;
  // Some bytes of one tensor.
  comm::Result<void> read(const Entry& entry, uint64_t offset, void* data, size_t size) const;

 private:
  TensorReader(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  comm::Result<void> check(uint32_t data_crc) const;

  File file_;
  std::string path_;
  Header header_;
  uint64_t bytes_ = 0;
  uint64_t data_begin_ = 0;
  uint32_t header_crc_ = 0;
  std::optional<std::string> data_crc_;  // as the file says
};

}  // namespace muster::train::detail
