// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/checkpoint.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The safetensors format, pure: the length of the header (8 bytes, little-endian), the header in
// JSON, the tensors' bytes without gaps.
//
//   {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3],
//    "data_offsets": [0, 24]}}                     offsets count from the end of the header
namespace muster::train::detail {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // as other readers of the format have it

struct Entry {
  std::string name{};
  std::string dtype{};                   // as in the file, "F32"
  std::optional<comm::DataType> type{};  // none: one that we have not
  std::vector<int64_t> shape{};
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Header {
  std::vector<Entry> entries{};  // as they stand in the file: each begins where the last one ends
  Metadata metadata{};
};

// kInvalidArgument for what no file could hold.
comm::Result<void> check_tensors(std::span<const NamedTensor> tensors);

// The length and the header of a file of these tensors, in this order.
comm::Result<std::string> make_header(std::span<const NamedTensor> tensors,
                                      const Metadata& metadata);

uint64_t decode_length(std::string_view bytes);

// Of a file that has `data_bytes` after its header; `path` is for the error.
comm::Result<Header> parse_header(std::string_view json, uint64_t data_bytes,
                                  const std::string& path);

// Whether file and program have the same tensors: for each entry the program's tensor.
comm::Result<std::vector<const NamedTensor*>> match_tensors(const Header& header,
                                                            std::span<const NamedTensor> tensors,
                                                            const std::string& path);

std::string describe(const std::string& dtype, const std::vector<int64_t>& shape);  // "F32 [2, 3]"
const char* dtype_of(comm::DataType type);                                          // "F32"

}  // namespace muster::train::detail
