// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "loop/check.h"
#include "loop/http_content.h"
#include "loop/http_request_parser.h"
#include "loop/http_target.h"

namespace {

constexpr muster::HttpRequestParser::Limits kLimits{512, 256, 8};

struct Outcome {
  std::vector<muster::HttpRequestParser::Parsed> requests;
  int status = 0;
  bool within = false;
};

Outcome parse(std::string_view bytes, size_t step) {
  muster::HttpRequestParser parser(kLimits);
  Outcome outcome;
  for (size_t at = 0; at < bytes.size() && outcome.status == 0; at += step) {
    std::string_view piece = bytes.substr(at, step);
    while (!piece.empty() && outcome.status == 0) {
      const size_t before = piece.size();
      const auto progress = parser.feed(piece);
      MUST(piece.size() < before);
      if (progress == muster::HttpRequestParser::Progress::kComplete)
        outcome.requests.push_back(parser.take());
      if (progress == muster::HttpRequestParser::Progress::kRefused)
        outcome.status = parser.refusal().status;
      MUST(parser.held() <= kLimits.max_head + kLimits.max_body);
    }
  }
  outcome.within = parser.within_request();
  return outcome;
}

void check(const muster::HttpServerRequest& request) {
  MUST(request.body.size() <= kLimits.max_body);
  MUST(request.headers.size() <= kLimits.max_headers + 1);  // an absolute target's Host
  MUST(muster::is_utf8(request.path) && request.path.find('\0') == std::string::npos);
  MUST(request.path == "*" || request.path[0] == '/');
  MUST((request.path + "/").find("/../") == std::string::npos);
  for (const auto& [name, value] : request.headers)
    MUST(value.find_first_of("\r\n") == std::string::npos && !name.empty());
  request.cookie("token");
  muster::accepts_gzip(request);
  muster::client_has(request, "\"v\"");
  const muster::HttpRange range = muster::choose_range(request, 100, "\"v\"");
  MUST(range.first >= 0 && range.count >= 0 && range.first + range.count <= 100);
}

}  // namespace

// The first byte says how the rest is split; whole and split it must come to the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = parse(bytes, bytes.size());
  const Outcome split = parse(bytes, size_t{data[0]} + 1);
  MUST(whole.status == split.status && whole.within == split.within);
  MUST(whole.requests.size() == split.requests.size());
  for (size_t i = 0; i < whole.requests.size(); ++i) {
    const muster::HttpServerRequest& a = whole.requests[i].request;
    const muster::HttpServerRequest& b = split.requests[i].request;
    MUST(a.method == b.method && a.target == b.target && a.path == b.path && a.query == b.query);
    MUST(a.headers == b.headers && a.body == b.body);
    check(a);
  }
  return 0;
}
