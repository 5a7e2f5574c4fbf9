// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "loop/http_response_parser.h"

// The first byte says how the rest is split; whole and split it must come to the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = size_t{data[0]} + 1;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const muster::HttpLimits limits{512, 1024};
  muster::HttpResponseParser whole(limits);
  auto at_once = whole.feed(bytes);
  muster::HttpResponseParser split(limits);
  muster::Result<muster::HttpResponseParser::Progress> piecewise =
      muster::HttpResponseParser::Progress::kNeedsMore;
  for (size_t at = 0; at < bytes.size() && piecewise; at += step)
    piecewise = split.feed(bytes.substr(at, step));
  MUST(at_once.has_value() == piecewise.has_value());
  if (at_once) {
    MUST(*at_once == *piecewise);
    MUST(whole.finish().has_value() == split.finish().has_value());
  }
  const muster::HttpResponse first = whole.take_response();
  const muster::HttpResponse second = split.take_response();
  if (at_once) MUST(first.status == second.status && first.headers == second.headers);
  if (at_once) MUST(first.body == second.body);
  MUST(first.body.size() <= limits.max_body);
  return 0;
}
