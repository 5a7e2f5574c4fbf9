// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/forwarded_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "loop/http_target.h"

namespace muster {

namespace {

constexpr std::array<std::string_view, 8> kAskedWith = {
    "accept",        "accept-encoding", "if-match", "if-modified-since",
    "if-none-match", "last-event-id",   "if-range", "range"};
constexpr std::array<std::string_view, 10> kNotAnswered = {
    "connection", "content-length", "date",    "keep-alive",       "server", "set-cookie",
    "te",         "trailer",        "upgrade", "transfer-encoding"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

bool is_header(std::string_view name, std::string_view value) {
  return !name.empty() && name.size() <= kMaxHeaderName &&
         std::all_of(name.begin(), name.end(), is_name_character) &&
         std::all_of(value.begin(), value.end(), is_printable);
}

template <typename Wanted>
HttpHeaders chosen(const HttpHeaders& headers, Wanted wanted) {
  HttpHeaders kept;
  for (const auto& [name, value] : headers) {
    std::string lower = name;
    for (char& c : lower)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (wanted(lower)) kept.emplace_back(std::move(lower), value);
  }
  keep_headers(kept);
  return kept;
}

void append_encoded(std::string& out, std::string_view text, std::string_view kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = is_name_character(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '~' ||
                       kept.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
}

}  // namespace

bool is_target(std::string_view target) {
  return target.starts_with('/') && target.size() <= kMaxTarget &&
         std::all_of(target.begin(), target.end(),
                     [](char c) { return is_printable(c) && c != ' '; });
}

bool are_headers(const HttpHeaders& headers) {
  size_t bytes = 0;
  for (const auto& [name, value] : headers) {
    bytes += name.size() + value.size();
    if (!is_header(name, value)) return false;
  }
  return headers.size() <= kMaxForwardedHeaders && bytes <= kMaxHeaderBytes;
}

void keep_headers(HttpHeaders& headers) {
  size_t bytes = 0, kept = 0;
  std::erase_if(headers, [&](const auto& header) {
    const size_t size = header.first.size() + header.second.size();
    const bool fits = kept < kMaxForwardedHeaders && bytes + size <= kMaxHeaderBytes &&
                      is_header(header.first, header.second);
    if (!fits) return true;
    bytes += size;
    ++kept;
    return false;
  });
}

HttpHeaders headers_to_ask_with(const HttpHeaders& headers) {
  return chosen(headers, [](std::string_view name) { return is_one_of(kAskedWith, name); });
}

HttpHeaders headers_to_answer_with(const HttpHeaders& headers) {
  return chosen(headers, [](std::string_view name) { return !is_one_of(kNotAnswered, name); });
}

// Made from what was decoded, so that a token is found however it was written.
std::string target_to_ask_for(const HttpServerRequest& request) {
  std::string target;
  append_encoded(target, request.path, "/");
  char before = '?';
  for (const auto& [name, value] : request.query) {
    if (name == "token") continue;
    target += std::exchange(before, '&');
    append_encoded(target, name, "");
    target += '=';
    append_encoded(target, value, ",/:");
  }
  return target;
}

std::optional<HttpServerRequest> forwarded_request(std::string target, HttpHeaders headers) {
  std::optional<HttpTarget> parsed = parse_target(target, false);
  if (!parsed || !parsed->authority.empty()) return std::nullopt;
  HttpServerRequest request;
  request.method = "GET";
  request.path = std::move(parsed->path);
  request.query = std::move(parsed->query);
  request.target = std::move(target);
  request.headers = std::move(headers);
  return request;
}

}  // namespace muster
