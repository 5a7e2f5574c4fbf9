// SPDX-License-Identifier: Apache-2.0
#include "loop/http_chunks.h"

#include <algorithm>

namespace muster {

namespace {

// 2^60 bytes: more than anybody sends, and far from an overflow.
constexpr int kMaxDigits = 15;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_http_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool is_http_value(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

HttpChunks::Progress HttpChunks::feed(std::string_view bytes, size_t max_body, std::string& body,
                                      size_t& used) {
  used = 0;
  while (used < bytes.size()) {
    if (at_ == At::kData) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size() - used));
      body.append(bytes.substr(used, count));
      used += count;
      left_ -= count;
      if (left_ == 0) at_ = At::kDataCr;
      continue;
    }
    const Progress progress = on_framing(bytes[used++], max_body - body.size());
    if (progress != Progress::kNeedsMore) return progress;
  }
  return Progress::kNeedsMore;
}

HttpChunks::Progress HttpChunks::on_framing(char c, size_t room) {
  switch (at_) {
    case At::kSize:
      return on_size(c);
    case At::kExtension:
      if (c == '\r') {
        at_ = At::kSizeEnd;
        return Progress::kNeedsMore;
      }
      if (!is_http_value(c)) return Progress::kMalformed;
      return ++extra_ > max_extra_ ? Progress::kTooMuchExtra : Progress::kNeedsMore;
    case At::kSizeEnd:
      return on_size_line_end(c, room);
    case At::kData:
      break;  // not framing
    case At::kDataCr:
      at_ = At::kDataLf;
      return c == '\r' ? Progress::kNeedsMore : Progress::kMalformed;
    case At::kDataLf:
      at_ = At::kSize;
      return c == '\n' ? Progress::kNeedsMore : Progress::kMalformed;
    case At::kTrailer:
      return on_trailer(c);
    case At::kTrailerEnd:
      if (c != '\n') return Progress::kMalformed;
      if (trailer_line_ == 0) return Progress::kComplete;
      if (!trailer_named_) return Progress::kMalformed;
      at_ = At::kTrailer;
      trailer_line_ = 0;
      trailer_named_ = false;
      return Progress::kNeedsMore;
  }
  return Progress::kMalformed;
}

HttpChunks::Progress HttpChunks::on_size(char c) {
  if (const int digit = hex_digit(c); digit >= 0) {
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    return ++digits_ > kMaxDigits ? Progress::kMalformed : Progress::kNeedsMore;
  }
  if (digits_ == 0 || (c != '\r' && c != ';')) return Progress::kMalformed;
  at_ = c == ';' ? At::kExtension : At::kSizeEnd;
  return Progress::kNeedsMore;
}

HttpChunks::Progress HttpChunks::on_size_line_end(char c, size_t room) {
  if (c != '\n') return Progress::kMalformed;
  if (left_ > room) return Progress::kTooLarge;
  at_ = left_ == 0 ? At::kTrailer : At::kData;
  digits_ = 0;
  return Progress::kNeedsMore;
}

HttpChunks::Progress HttpChunks::on_trailer(char c) {
  if (c == '\r') {
    at_ = At::kTrailerEnd;
    return Progress::kNeedsMore;
  }
  if (c == ':' && trailer_line_ > 0) trailer_named_ = true;
  ++trailer_line_;
  const bool fits = trailer_named_ ? is_http_value(c) : is_http_token(c);
  if (!fits) return Progress::kMalformed;
  return ++extra_ > max_extra_ ? Progress::kTooMuchExtra : Progress::kNeedsMore;
}

}  // namespace muster
