// SPDX-License-Identifier: Apache-2.0
//
// The head is collected up to its empty line and checked line by line before llhttp reads it: that
// library is lenient in places (bare line feeds, space around a name), and which ones depends on
// its version. What passes here, all its versions read in the same way.
#include "loop/http_request_parser.h"

#include <llhttp.h>

#include <algorithm>
#include <array>

#include "loop/check.h"
#include "loop/http_target.h"

namespace muster {

namespace {

constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",    "POST", "PUT",
                                                      "DELETE", "OPTIONS", "PATCH"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
}

bool is_version(std::string_view text) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.substr(0, 5) == "HTTP/" && digit(text[5]) && text[6] == '.' &&
         digit(text[7]);
}

HttpRequestParser::Refusal check_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos || line.find(' ', second + 1) != line.npos)
    return {400, "the request line is not METHOD TARGET VERSION"};
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (method.empty() || !std::all_of(method.begin(), method.end(), is_http_token))
    return {400, "the method is malformed"};
  if (target.empty() ||
      !std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; }))
    return {400, "the target is malformed"};
  if (!is_version(version)) return {400, "the version is malformed"};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return {505, "HTTP/1.1 is spoken here"};
  if (std::find(kMethods.begin(), kMethods.end(), method) == kMethods.end())
    return {501, "no such method here"};
  return {};
}

bool is_header_line(std::string_view line) {
  const size_t colon = line.find(':');
  return colon != line.npos && colon > 0 &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon),
                     is_http_token) &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon), line.end(), is_http_value);
}

// What llhttp reads out of a head.
struct Head {
  std::string method, target;
  HttpHeaders headers;
  bool value_begun = true;  // the next piece of a name begins a new header
  bool complete = false;
  bool keeps_alive = false;
  bool http_1_0 = false;

  static Head& of(llhttp_t* parser) { return *static_cast<Head*>(parser->data); }

  int on_name(std::string_view piece) {
    if (value_begun) headers.emplace_back();
    value_begun = false;
    headers.back().first += lower(piece);
    return 0;
  }

  int on_value(std::string_view piece) {
    value_begun = true;
    if (!headers.empty()) headers.back().second += piece;
    return 0;
  }

  int on_complete(llhttp_t* parser) {
    complete = true;
    method = llhttp_method_name(static_cast<llhttp_method_t>(parser->method));
    keeps_alive = llhttp_should_keep_alive(parser) != 0;
    http_1_0 = parser->http_minor == 0;
    return HPE_PAUSED;
  }
};

Head run_llhttp(std::string_view text) {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_url = [](llhttp_t* parser, const char* at, size_t size) noexcept {
    Head::of(parser).target.append(at, size);
    return 0;
  };
  settings.on_header_field = [](llhttp_t* parser, const char* at, size_t size) noexcept {
    return Head::of(parser).on_name({at, size});
  };
  settings.on_header_value = [](llhttp_t* parser, const char* at, size_t size) noexcept {
    return Head::of(parser).on_value({at, size});
  };
  settings.on_headers_complete = [](llhttp_t* parser) noexcept {
    return Head::of(parser).on_complete(parser);
  };
  Head head;
  llhttp_t parser;
  llhttp_init(&parser, HTTP_REQUEST, &settings);
  parser.data = &head;
  llhttp_execute(&parser, text.data(), text.size());
  for (auto& [name, value] : head.headers)
    value.erase(std::min(value.find_last_not_of(" \t") + 1, value.size()));
  return head;
}

}  // namespace

HttpRequestParser::Progress HttpRequestParser::refuse(int status, std::string_view why) {
  refusal_ = {status, why};
  within_ = false;
  head_ = {};
  read_head_ = 0;
  parsed_ = {};
  return Progress::kRefused;
}

HttpRequestParser::Progress HttpRequestParser::feed(std::string_view& bytes) {
  if (refusal_.status != 0) return Progress::kRefused;
  if (!head_done_) {
    const Progress progress = feed_head(bytes);
    if (progress != Progress::kNeedsMore || !head_done_) return progress;
  }
  return chunks_ ? feed_chunks(bytes) : feed_body(bytes);
}

HttpRequestParser::Progress HttpRequestParser::feed_head(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    within_ = true;
    const bool after_cr = !head_.empty() && head_.back() == '\r';
    if ((c == '\n') != after_cr) return refuse(400, "a line does not end with CR LF");
    if (!is_http_value(c) && c != '\r' && c != '\n')
      return refuse(400, "a control character in the head");
    if (head_.size() == limits_.max_head) return refuse(431, "the head is too large");
    head_ += c;
    if (c != '\n') continue;
    if (head_.size() == 2) {
      // Some clients send one behind the body of the request before.
      if (empty_line_) return refuse(400, "empty lines before the request");
      empty_line_ = true;
      within_ = false;
      head_.clear();
    } else if (head_.ends_with("\r\n\r\n")) {
      return on_head();
    }
  }
  return Progress::kNeedsMore;
}

HttpRequestParser::Progress HttpRequestParser::on_head() {
  head_done_ = true;
  Refusal refusal = check_head();
  if (refusal.status == 0) refusal = read_head();
  if (refusal.status == 0) refusal = read_framing();
  read_head_ = head_.size();
  head_ = {};
  return refusal.status == 0 ? Progress::kNeedsMore : refuse(refusal.status, refusal.why);
}

HttpRequestParser::Refusal HttpRequestParser::check_head() const {
  std::string_view rest = head_;
  const size_t first_end = rest.find("\r\n");
  const Refusal refusal = check_request_line(rest.substr(0, first_end));
  if (refusal.status != 0) return refusal;
  rest.remove_prefix(first_end + 2);
  size_t count = 0;
  while (rest != "\r\n") {
    const size_t end = rest.find("\r\n");
    if (!is_header_line(rest.substr(0, end))) return {400, "a header is malformed"};
    if (++count > limits_.max_headers) return {431, "too many headers"};
    rest.remove_prefix(end + 2);
  }
  return {};
}

HttpRequestParser::Refusal HttpRequestParser::read_head() {
  Head head = run_llhttp(head_);
  if (!head.complete) return {400, "the head is malformed"};
  std::optional<HttpTarget> target = parse_target(head.target, head.method == "OPTIONS");
  if (!target) return {400, "the target is malformed"};
  HttpServerRequest& request = parsed_.request;
  request.method = std::move(head.method);
  request.target = std::move(head.target);
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  request.headers = std::move(head.headers);
  parsed_.keeps_alive = head.keeps_alive;
  parsed_.http_1_0 = head.http_1_0;
  return read_host(target->authority);
}

// The authority of an absolute target rules over Host; as only Host is looked at later, the two
// must agree.
HttpRequestParser::Refusal HttpRequestParser::read_host(const std::string& authority) {
  HttpHeaders& headers = parsed_.request.headers;
  auto is_host = [](const auto& header) { return header.first == "host"; };
  const auto count = std::count_if(headers.begin(), headers.end(), is_host);
  if (count > 1) return {400, "more than one Host"};
  if (count == 0) {
    if (!parsed_.http_1_0) return {400, "no Host"};
    if (!authority.empty()) headers.emplace_back("host", authority);
    return {};
  }
  const std::string& host = std::find_if(headers.begin(), headers.end(), is_host)->second;
  if (!is_authority(host)) return {400, "Host is malformed"};
  if (!authority.empty() && lower(host) != lower(authority))
    return {400, "Host is not that of the target"};
  return {};
}

HttpRequestParser::Refusal HttpRequestParser::read_framing() {
  const std::string* length = nullptr;
  const std::string* coding = nullptr;
  const std::string* expect = nullptr;
  for (const auto& [name, value] : parsed_.request.headers) {
    const std::string** place = name == "content-length"      ? &length
                                : name == "transfer-encoding" ? &coding
                                : name == "expect"            ? &expect
                                                              : nullptr;
    if (place == nullptr) continue;
    if (*place != nullptr) return {400, "a header that may come once came twice"};
    *place = &value;
  }
  if (coding != nullptr && length != nullptr) return {400, "two ways to tell the body's length"};
  if (coding != nullptr) {
    if (parsed_.http_1_0) return {400, "HTTP/1.0 has no chunks"};
    if (lower(*coding) != "chunked") return {501, "no such transfer coding here"};
    chunks_.emplace(limits_.max_head);
  } else if (length != nullptr) {
    if (length->empty() ||
        !std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; }))
      return {400, "Content-Length is malformed"};
    if (length->size() > 15) return {413, "the body is too large"};
    body_size_ = std::stoull(*length);
    if (body_size_ > limits_.max_body) return {413, "the body is too large"};
  }
  if (expect != nullptr && !parsed_.http_1_0) {
    if (lower(*expect) != "100-continue") return {417, "what is expected is not known here"};
    wants_continue_ = chunks_ || body_size_ > 0;
  }
  return {};
}

HttpRequestParser::Progress HttpRequestParser::feed_body(std::string_view& bytes) {
  std::string& body = parsed_.request.body;
  const size_t count = std::min<size_t>(body_size_ - body.size(), bytes.size());
  body.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  if (count > 0) wants_continue_ = false;
  return body.size() == body_size_ ? Progress::kComplete : Progress::kNeedsMore;
}

HttpRequestParser::Progress HttpRequestParser::feed_chunks(std::string_view& bytes) {
  size_t used = 0;
  const auto progress = chunks_->feed(bytes, limits_.max_body, parsed_.request.body, used);
  bytes.remove_prefix(used);
  if (used > 0) wants_continue_ = false;
  switch (progress) {
    case HttpChunks::Progress::kNeedsMore:
      return Progress::kNeedsMore;
    case HttpChunks::Progress::kComplete:
      return Progress::kComplete;
    case HttpChunks::Progress::kMalformed:
      return refuse(400, "a chunk is malformed");
    case HttpChunks::Progress::kTooLarge:
      return refuse(413, "the body is too large");
    case HttpChunks::Progress::kTooMuchExtra:
      return refuse(431, "chunk extensions or trailers are too large");
  }
  return refuse(400, "a chunk is malformed");
}

HttpRequestParser::Parsed HttpRequestParser::take() {
  within_ = head_done_ = empty_line_ = wants_continue_ = false;
  chunks_.reset();
  body_size_ = 0;
  read_head_ = 0;
  return std::exchange(parsed_, {});
}

}  // namespace muster
