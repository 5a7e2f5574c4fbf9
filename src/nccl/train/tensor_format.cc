// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/tensor_format.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nccl/train/files.h"

namespace muster::train::detail {

namespace {

using Json = nlohmann::ordered_json;
using comm::DataType;
using comm::Error;
using comm::ErrorCode;
using comm::Result;

constexpr std::array<const char*, comm::kDataTypes> kDtypes = {"I8",  "U8",  "I32", "U32", "I64",
                                                               "U64", "F16", "F32", "F64", "BF16"};

std::optional<DataType> type_of(const std::string& dtype) {
  const auto* found = std::find(kDtypes.begin(), kDtypes.end(), dtype);
  if (found == kDtypes.end()) return {};
  return static_cast<DataType>(found - kDtypes.begin());
}

// The product of the shape; none if it is negative or has no end.
std::optional<uint64_t> elements_of(const std::vector<int64_t>& shape) {
  uint64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0) return {};
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) return {};
  }
  return elements;
}

Error cannot_be(const NamedTensor& tensor, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "checkpoint: tensor '" + tensor.name + "': " + why};
}

// What nlohmann::json may throw for is asked before, so that nothing is thrown.
bool is_size(const Json& value) {
  return value.is_number_unsigned();
}

std::optional<Entry> parse_entry(const std::string& name, const Json& value) {
  if (!value.is_object()) return {};
  const auto dtype = value.find("dtype");
  const auto shape = value.find("shape");
  const auto offsets = value.find("data_offsets");
  if (dtype == value.end() || !dtype->is_string()) return {};
  if (shape == value.end() || !shape->is_array()) return {};
  if (!std::all_of(shape->begin(), shape->end(), is_size)) return {};
  if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2) return {};
  if (!std::all_of(offsets->begin(), offsets->end(), is_size)) return {};
  Entry entry{name, dtype->get<std::string>()};
  entry.type = type_of(entry.dtype);
  entry.shape = shape->get<std::vector<int64_t>>();
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  const std::optional<uint64_t> elements = elements_of(entry.shape);
  if (!elements || entry.end < entry.begin) return {};
  uint64_t bytes = 0;
  if (entry.type && __builtin_mul_overflow(*elements, size_of(*entry.type), &bytes)) return {};
  if (entry.type && bytes != entry.end - entry.begin) return {};
  return entry;
}

bool parse_metadata(const Json& value, Metadata& metadata) {
  if (!value.is_object()) return false;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return false;
    metadata[key] = text.get<std::string>();
  }
  return true;
}

}  // namespace

const char* dtype_of(DataType type) {
  return kDtypes[static_cast<size_t>(type)];
}

std::string describe(const std::string& dtype, const std::vector<int64_t>& shape) {
  std::string text = dtype + " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<void> check_tensors(std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__") {
      return cannot_be(tensor, "not a name that a tensor can have");
    }
    if (!names.insert(tensor.name).second) return cannot_be(tensor, "two have this name");
    if (tensor.data.memory != comm::Memory::kHost) {
      return cannot_be(tensor, "it is in device memory; copy it to the host first");
    }
    if (elements_of(tensor.shape) != tensor.data.count) {
      return cannot_be(tensor, "it has " + std::to_string(tensor.data.count) + " elements, not " +
                                   describe(dtype_of(tensor.data.type), tensor.shape));
    }
    if (tensor.data.data == nullptr && tensor.data.count > 0) return cannot_be(tensor, "no memory");
  }
  return {};
}

Result<std::string> make_header(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const uint64_t end = offset + tensor.data.bytes();
    json[tensor.name] = {{"dtype", dtype_of(tensor.data.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Bytes that are no UTF-8 become replacement characters instead of an exception.
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the numbers are aligned
  if (text.size() > kMaxHeader) {
    return Error{ErrorCode::kInvalidArgument, "checkpoint: names and metadata need " +
                                                  std::to_string(text.size()) + " bytes, at most " +
                                                  std::to_string(kMaxHeader) + " are allowed"};
  }
  std::string bytes;
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return bytes + text;
}

uint64_t decode_length(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return length;
}

Result<Header> parse_header(std::string_view text, uint64_t data_bytes, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad_file(path, "not a safetensors file: its header is no JSON");
  Header header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!parse_metadata(value, header.metadata)) return bad_file(path, "its metadata is wrong");
      continue;
    }
    std::optional<Entry> entry = parse_entry(name, value);
    if (!entry) return bad_file(path, "its header is wrong at tensor '" + name + "'");
    header.entries.push_back(*std::move(entry));
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const Entry& a, const Entry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  uint64_t end = 0;
  for (const Entry& entry : header.entries) {
    if (entry.begin != end) {
      return bad_file(path, "its header is wrong at tensor '" + entry.name +
                                "', which does not begin where the one before ends");
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    return bad_file(path, "torn: it has " + std::to_string(data_bytes) +
                              " bytes of numbers, its header says " + std::to_string(end));
  }
  return header;
}

Result<std::vector<const NamedTensor*>> match_tensors(const Header& header,
                                                      std::span<const NamedTensor> tensors,
                                                      const std::string& path) {
  const auto differs = [&path](const std::string& name, const std::string& how) {
    return Error{ErrorCode::kMismatch, "checkpoint: " + path + ": tensor '" + name + "' " + how};
  };
  std::map<std::string_view, const NamedTensor*> wanted;
  for (const NamedTensor& tensor : tensors)
    wanted[tensor.name] = &tensor;
  std::vector<const NamedTensor*> matched;
  for (const Entry& entry : header.entries) {
    const auto found = wanted.find(entry.name);
    if (found == wanted.end()) return differs(entry.name, "is not one of the program's");
    const NamedTensor& tensor = *found->second;
    if (entry.type != tensor.data.type || entry.shape != tensor.shape) {
      return differs(entry.name, "is " + describe(entry.dtype, entry.shape) +
                                     ", the program's is " +
                                     describe(dtype_of(tensor.data.type), tensor.shape));
    }
    matched.push_back(&tensor);
    wanted.erase(found);
  }
  if (!wanted.empty()) return differs(std::string(wanted.begin()->first), "is missing");
  return matched;
}

}  // namespace muster::train::detail
