// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>
#include <muster/train/tensor.h>

#include <map>
#include <optional>
#include <span>
#include <string>

// Checkpoints: named tensors of host memory and a few strings in one file. The file is in the
// safetensors format (8 bytes of length, a JSON header, the numbers), so that Python reads it too;
// the CRC-32 of the numbers stands in its metadata under kChecksumKey and is checked when it is
// there.
//
// Errors of all functions here: kInvalidArgument (device memory, a name twice, a count that is not
// the product of the shape), kMismatch (file and program do not have the same tensors, or the ranks
// do not see the same file), kSystem (what the operating system says; a file that is torn or
// altered). Paths stand in the messages.
namespace muster::train {

// Keys and values are UTF-8.
using Metadata = std::map<std::string, std::string>;

// Where the checksum stands in a file's metadata.
constexpr const char* kChecksumKey = "muster.crc32";

// Writes the file so that there is always a whole one at `path`, the earlier or the new one,
// whatever is killed when: under another name first ("<path>.partial"), then fsync, rename, and
// fsync of the folder, which must exist.
comm::Result<void> write_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                                 const Metadata& metadata = {});

// Fills the tensors from the file, by name. The file must have these tensors, with these types and
// shapes, and no others. After an error the tensors may hold anything. The checksum is not among
// the metadata that it returns.
comm::Result<Metadata> read_tensors(const std::string& path, std::span<const NamedTensor> tensors);

// What a file holds, without reading the numbers: type and shape; `data` is null.
struct TensorFile {
  std::vector<NamedTensor> tensors{};  // in the order in which they stand in the file
  Metadata metadata{};
};
comm::Result<TensorFile> inspect_tensors(const std::string& path);

// The checkpoint of a job whose ranks all have the same state: rank 0 writes its own, as
// write_tensors(), and everybody waits until it is safely there. Called by all ranks of the
// communicator, which must be one for host memory; they all get the same answer. What only the
// other ranks pass is ignored.
comm::Result<void> save_checkpoint(comm::Communicator& communicator, const std::string& path,
                                   std::span<const NamedTensor> tensors,
                                   const Metadata& metadata = {});

// Everybody loads it, as read_tensors(), from a file system that all share. No value where there is
// no checkpoint yet: a fresh start. That one rank has another file, or none, is kMismatch on all.
comm::Result<std::optional<Metadata>> load_checkpoint(comm::Communicator& communicator,
                                                      const std::string& path,
                                                      std::span<const NamedTensor> tensors);

}  // namespace muster::train
