// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/tensor_io.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nccl/train/crc32.h"

namespace muster::train {

namespace detail {

using comm::Result;

Result<WrittenFile> write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                                      const Metadata& metadata) {
  if (Result<void> checked = check_tensors(tensors); !checked) return checked.error();
  uint32_t data_crc = 0;
  for (const NamedTensor& tensor : tensors) {
    data_crc = crc32(data_crc, tensor.data.data, tensor.data.bytes());
  }
  Metadata with_checksum = metadata;
  with_checksum[kChecksumKey] = crc32_text(data_crc);
  Result<std::string> header = make_header(tensors, with_checksum);
  if (!header) return header.error();

  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.error();
  WrittenFile written{header->size(), crc32(0, header->data(), header->size())};
  Result<void> done = file->write(header->data(), header->size());
  for (const NamedTensor& tensor : tensors) {
    if (done) done = file->write(tensor.data.data, tensor.data.bytes());
    written.bytes += tensor.data.bytes();
  }
  if (done) done = file->commit();
  if (!done) return done.error();
  return written;
}

Result<TensorReader> TensorReader::open(const std::string& path) {
  Result<File> file = open_to_read(path);
  if (!file) return file.error();
  TensorReader reader(*std::move(file), path);
  Result<uint64_t> size = size_of_file(reader.file_, path);
  if (!size) return size.error();
  reader.bytes_ = *size;
  if (reader.bytes_ < kLengthBytes) return bad_file(path, "torn: it has no header");

  std::string text(kLengthBytes, '\0');
  Result<void> done = read_at(reader.file_, path, 0, text.data(), kLengthBytes);
  if (!done) return done.error();
  const uint64_t length = decode_length(text);
  if (length > kMaxHeader) return bad_file(path, "not a safetensors file: its header is too long");
  if (length > reader.bytes_ - kLengthBytes) return bad_file(path, "torn: its header is cut off");
  text.resize(kLengthBytes + length);
  done = read_at(reader.file_, path, kLengthBytes, text.data() + kLengthBytes, length);
  if (!done) return done.error();

  reader.header_crc_ = crc32(0, text.data(), text.size());
  reader.data_begin_ = text.size();
  const std::string_view json = std::string_view(text).substr(kLengthBytes);
  Result<Header> header = parse_header(json, reader.bytes_ - reader.data_begin_, path);
  if (!header) return header.error();
  reader.header_ = *std::move(header);
  if (auto found = reader.header_.metadata.extract(kChecksumKey)) {
    reader.data_crc_ = std::move(found.mapped());
  }
  return reader;
}

Result<void> TensorReader::check(uint32_t data_crc) const {
  if (!data_crc_ || *data_crc_ == crc32_text(data_crc)) return {};
  return bad_file(path_, "altered: the checksum of its numbers is " + crc32_text(data_crc) +
                             ", not " + *data_crc_);
}

Result<void> TensorReader::read_into(std::span<const NamedTensor> tensors) const {
  auto matched = match_tensors(header_, tensors, path_);
  if (!matched) return matched.error();
  uint32_t crc = 0;
  for (size_t i = 0; i < header_.entries.size(); ++i) {
    const comm::Buffer& memory = (*matched)[i]->data;
    Result<void> done = read(header_.entries[i], 0, memory.data, memory.bytes());
    if (!done) return done;
    crc = crc32(crc, memory.data, memory.bytes());
  }
  return check(crc);
}

Result<void> TensorReader::verify() const {
  constexpr uint64_t piece = 1 << 20;
  std::vector<char> bytes(piece);
  uint32_t crc = 0;
  for (uint64_t at = data_begin_; at < bytes_;) {
    const uint64_t size = std::min(piece, bytes_ - at);
    Result<void> done = read_at(file_, path_, at, bytes.data(), size);
    if (!done) return done;
    crc = crc32(crc, bytes.data(), size);
    at += size;
  }
  return check(crc);
}

Result<void> TensorReader::read(const Entry& entry, uint64_t offset, void* data,
                                size_t size) const {
  return read_at(file_, path_, data_begin_ + entry.begin + offset, data, size);
}

}  // namespace detail

comm::Result<void> write_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                                 const Metadata& metadata) {
  const auto written = detail::write_tensor_file(path, tensors, metadata);
  if (!written) return written.error();
  return {};
}

comm::Result<Metadata> read_tensors(const std::string& path, std::span<const NamedTensor> tensors) {
  if (comm::Result<void> checked = detail::check_tensors(tensors); !checked) return checked.error();
  const auto reader = detail::TensorReader::open(path);
  if (!reader) return reader.error();
  const comm::Result<void> done = reader->read_into(tensors);
  if (!done) return done.error();
  return reader->header().metadata;
}

comm::Result<TensorFile> inspect_tensors(const std::string& path) {
  const auto reader = detail::TensorReader::open(path);
  if (!reader) return reader.error();
  TensorFile file;
  file.metadata = reader->header().metadata;
  for (const detail::Entry& entry : reader->header().entries) {
    if (!entry.type) return detail::bad_file(path, "type " + entry.dtype + " is not known here");
    size_t count = 1;
    for (const int64_t size : entry.shape)
      count *= static_cast<size_t>(size);
    file.tensors.emplace_back(entry.name, entry.shape, comm::Buffer(nullptr, count, *entry.type));
  }
  return file;
}

}  // namespace muster::train
