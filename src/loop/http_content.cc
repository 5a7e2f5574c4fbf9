// SPDX-License-Identifier: Apache-2.0
#include "loop/http_content.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "loop/gzip.h"

namespace muster {

namespace {

// More than any content that is built into the binary.
constexpr size_t kMaxUnpacked = size_t{16} << 20;

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes the text up to `separator` off the front of `rest`, and the separator.
std::string_view take_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = trim(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

bool same_word(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.front() == '-') return {};
  return value;
}

// "gzip;q=0.5": whether it is wanted at all.
bool is_wanted(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = take_part(parameters, ';');
    if (parameter.size() < 2 || !same_word(parameter.substr(0, 2), "q=")) continue;
    return parameter.find_first_of("123456789") != std::string_view::npos;
  }
  return true;
}

std::string_view without_weakness(std::string_view etag) {
  return etag.substr(0, 2) == "W/" ? etag.substr(2) : etag;
}

}  // namespace

HttpRange choose_range(const HttpServerRequest& request, int64_t size, std::string_view etag) {
  HttpRange whole{HttpRange::Kind::kWhole, 0, size};
  const std::optional<std::string_view> header = request.header("range");
  if (!header || (request.method != "GET" && request.method != "HEAD")) return whole;
  // A weak tag, or a date, names no bytes.
  if (const auto condition = request.header("if-range"))
    if (etag.empty() || trim(*condition) != etag) return whole;
  std::string_view text = trim(*header);
  constexpr std::string_view kUnit = "bytes=";
  if (text.size() < kUnit.size() || !same_word(text.substr(0, kUnit.size()), kUnit)) return whole;
  text = trim(text.substr(kUnit.size()));
  const size_t dash = text.find('-');
  if (dash == text.npos || text.find(',') != text.npos) return whole;
  const std::string_view from = text.substr(0, dash), to = text.substr(dash + 1);
  const HttpRange unsatisfiable{HttpRange::Kind::kUnsatisfiable, 0, 0};
  if (from.empty()) {  // the last ones
    const std::optional<int64_t> count = to.empty() ? std::nullopt : number(to);
    if (!count) return whole;
    if (*count == 0 || size == 0) return unsatisfiable;
    const int64_t given = std::min(*count, size);
    return {HttpRange::Kind::kPart, size - given, given};
  }
  const std::optional<int64_t> first = number(from);
  const std::optional<int64_t> last = to.empty() ? std::max<int64_t>(size - 1, 0) : number(to);
  if (!first || !last || (!to.empty() && *last < *first)) return whole;
  if (*first >= size) return unsatisfiable;
  return {HttpRange::Kind::kPart, *first, std::min(*last, size - 1) - *first + 1};
}

std::string content_range(const HttpRange& range, int64_t size) {
  if (range.kind == HttpRange::Kind::kUnsatisfiable) return "bytes */" + std::to_string(size);
  return "bytes " + std::to_string(range.first) + "-" +
         std::to_string(range.first + range.count - 1) + "/" + std::to_string(size);
}

bool client_has(const HttpServerRequest& request, std::string_view etag) {
  const std::optional<std::string_view> header = request.header("if-none-match");
  if (!header || etag.empty()) return false;
  for (std::string_view rest = *header; !rest.empty();) {
    const std::string_view one = take_part(rest, ',');
    if (one == "*" || without_weakness(one) == without_weakness(etag)) return true;
  }
  return false;
}

bool accepts_gzip(const HttpServerRequest& request) {
  bool any = false;
  for (const auto& [name, value] : request.headers) {
    if (name != "accept-encoding") continue;
    for (std::string_view rest = value; !rest.empty();) {
      std::string_view parameters = take_part(rest, ',');
      const std::string_view coding = take_part(parameters, ';');
      if (same_word(coding, "gzip") || same_word(coding, "x-gzip")) return is_wanted(parameters);
      if (coding == "*") any = is_wanted(parameters);
    }
  }
  return any;
}

HttpContentAnswer answer_content(const HttpServerRequest& request, const HttpContent& content) {
  HttpContentAnswer answer;
  const bool packed = content.gzipped && accepts_gzip(request);
  // Two forms of one content are two sets of bytes: their tags differ.
  const std::string etag = "\"" + std::string(content.version) + (packed ? "-gz" : "") + "\"";
  answer.headers = {{"ETag", etag}};
  if (content.gzipped) answer.headers.emplace_back("Vary", "Accept-Encoding");
  if (client_has(request, etag)) {
    answer.status = 304;
    return answer;
  }
  std::string unpacked;
  if (content.gzipped && !packed) {
    Result<std::string> result = gunzip(content.bytes, kMaxUnpacked);
    MUST(result.has_value());  // it was packed when muster was built
    unpacked = std::move(*result);
  }
  const std::string_view bytes = content.gzipped && !packed ? unpacked : content.bytes;
  const auto size = static_cast<int64_t>(bytes.size());
  const HttpRange range = choose_range(request, size, etag);
  answer.headers.emplace_back("Accept-Ranges", "bytes");
  if (range.kind != HttpRange::Kind::kWhole)
    answer.headers.emplace_back("Content-Range", content_range(range, size));
  if (range.kind == HttpRange::Kind::kUnsatisfiable) {
    answer.status = 416;
    return answer;
  }
  answer.headers.emplace_back("Content-Type", content.type);
  if (packed) answer.headers.emplace_back("Content-Encoding", "gzip");
  if (range.kind == HttpRange::Kind::kPart) answer.status = 206;
  answer.body = bytes.substr(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
  return answer;
}

}  // namespace muster
