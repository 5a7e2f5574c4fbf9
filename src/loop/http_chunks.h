// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// Takes the chunks off a body, however the bytes are split. Pure. Stricter than the standard allows
// a reader to be, because a proxy before us must not see other borders than we do: lines end with
// CR LF and nothing else, a size is hexadecimal digits and nothing else.
class HttpChunks {
 public:
  // `max_extra` bounds the bytes of extensions and trailers, which are dropped, and the number of
  // digits.
  explicit HttpChunks(size_t max_extra) : max_extra_(max_extra) {}

  enum class Progress { kNeedsMore, kComplete, kMalformed, kTooLarge, kTooMuchExtra };

  // Appends to `body`, at most up to `max_body` bytes. `used` is how many bytes belong to the
  // message.
  Progress feed(std::string_view bytes, size_t max_body, std::string& body, size_t& used);

 private:
  enum class At { kSize, kExtension, kSizeEnd, kData, kDataCr, kDataLf, kTrailer, kTrailerEnd };

  Progress on_framing(char c, size_t room);
  Progress on_size(char c);
  Progress on_size_line_end(char c, size_t room);
  Progress on_trailer(char c);

  const size_t max_extra_;
  At at_ = At::kSize;
  size_t extra_ = 0;
  int digits_ = 0;
  uint64_t left_ = 0;           // of the chunk's data
  size_t trailer_line_ = 0;     // bytes of it so far
  bool trailer_named_ = false;  // its colon has come
};

// What may stand in a name ("token"), and in a value.
bool is_http_token(char c);
bool is_http_value(char c);

}  // namespace muster
