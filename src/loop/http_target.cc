// SPDX-License-Identifier: Apache-2.0
#include "loop/http_target.h"

#include <algorithm>

namespace muster {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Parts that walk the tree are refused rather than resolved: nobody who means well sends them.
bool has_dot_part(std::string_view path) {
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "." || part == "..") return true;
    at = end + 1;
  }
  return false;
}

bool parse_query(std::string_view text, std::vector<std::pair<std::string, std::string>>& query) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    std::optional<std::string> name = percent_decode(pair.substr(0, equals), true);
    std::optional<std::string> value =
        percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value || !is_utf8(*name) || !is_utf8(*value)) return false;
    if (name->find('\0') != std::string::npos || value->find('\0') != std::string::npos)
      return false;
    query.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

bool is_authority(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_~[]:%").find(c) != std::string_view::npos;
  });
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (size == 0 || lead > 0xf4 || size > text.size() - i) return false;
    for (size_t k = 1; k < size; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    if (size > 2) {
      // Longer than needed, a half of a UTF-16 pair, or beyond the last character.
      const auto next = static_cast<unsigned char>(text[i + 1]);
      if (lead == 0xe0 && next < 0xa0) return false;
      if (lead == 0xed && next >= 0xa0) return false;
      if (lead == 0xf0 && next < 0x90) return false;
      if (lead == 0xf4 && next >= 0x90) return false;
    }
    i += size;
  }
  return true;
}

std::optional<HttpTarget> parse_target(std::string_view target, bool options) {
  HttpTarget result;
  if (target == "*" && options) {
    result.path = "*";
    return result;
  }
  constexpr std::string_view kScheme = "http://";
  const bool absolute =
      target.size() >= kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), target.begin(), [](char expected, char c) {
        return expected == (c >= 'A' && c <= 'Z' ? c + 32 : c);
      });
  if (absolute) {
    target.remove_prefix(kScheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    result.authority = target.substr(0, end);
    if (!is_authority(result.authority)) return std::nullopt;
    target.remove_prefix(end);
  }
  if (target.find('#') != std::string_view::npos) return std::nullopt;
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  if (path.empty() ? !absolute : path.front() != '/') return std::nullopt;
  std::optional<std::string> decoded = percent_decode(path.empty() ? "/" : path, false);
  if (!decoded || !is_utf8(*decoded) || has_dot_part(*decoded)) return std::nullopt;
  if (std::any_of(decoded->begin(), decoded->end(), is_control)) return std::nullopt;
  result.path = std::move(*decoded);
  if (mark < target.size() && !parse_query(target.substr(mark + 1), result.query))
    return std::nullopt;
  return result;
}

}  // namespace muster
