// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/base64.h"

#include <cstdint>

namespace muster {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<uint8_t>(group[i]) : 0);
    for (size_t i = 0; i < 4; ++i)
      text += i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) {
      size_t digit = 0;
      if (at + i < text.size() - padding) digit = kAlphabet.find(text[at + i]);
      if (digit == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | static_cast<uint32_t>(digit);
    }
    const size_t count = at + 4 < text.size() ? 3 : 3 - padding;
    // Bits that belong to no byte must be zero, or two texts would mean the same.
    if ((bits & ((1u << 8 * (3 - count)) - 1)) != 0) return std::nullopt;
    for (size_t i = 0; i < count; ++i)
      bytes += static_cast<char>(bits >> (16 - 8 * i) & 255);
  }
  return bytes;
}

}  // namespace muster
