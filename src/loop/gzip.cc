// SPDX-License-Identifier: Apache-2.0
#include "loop/gzip.h"

#include <zlib.h>

#include <array>

namespace muster {

namespace {

// zlib's way to say: with gzip's header and trailer.
constexpr int kGzipWindow = 15 + 16;
// Logs are packed while somebody waits and a job runs: the fastest level makes them about as small.
constexpr int kLevel = 1;
constexpr int kMemory = 8;

// zlib does not write to its input, but its older interface does not say so.
Bytef* input(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

Result<std::string> gunzip(std::string_view packed, size_t max) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Error{0, "gzip: no memory"};
  stream.next_in = input(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::array<char, 16384> piece{};
  int status = Z_OK;
  while (status == Z_OK && out.size() <= max) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > max) return Error{0, "gzip: too much comes out"};
  if (status != Z_STREAM_END) return Error{0, "gzip: malformed"};
  return out;
}

struct GzipWriter::Impl {
  Impl() {
    MUST(deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) ==
         Z_OK);
  }
  ~Impl() { deflateEnd(&stream); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::string run(std::string_view bytes, int flush) {
    stream.next_in = input(bytes);
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::string out;
    std::array<char, 16384> piece{};
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = piece.size();
      deflate(&stream, flush);
      out.append(piece.data(), piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    return out;
  }

  z_stream stream{};
};

GzipWriter::GzipWriter() : impl_(std::make_unique<Impl>()) {}

GzipWriter::~GzipWriter() = default;

std::string GzipWriter::add(std::string_view bytes) {
  return bytes.empty() ? std::string() : impl_->run(bytes, Z_NO_FLUSH);
}

std::string GzipWriter::finish() {
  return impl_->run({}, Z_FINISH);
}

}  // namespace muster
