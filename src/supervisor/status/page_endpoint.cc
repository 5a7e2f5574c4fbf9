// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/page_endpoint.h"

#include <utility>

#include "loop/http_content.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/page_files.h"

namespace muster {

namespace {

// Once, or a browser without the cookie would go round for ever.
constexpr char kAskAgain[] = R"(const key = "muster-asked-again";
if (sessionStorage.getItem(key)) {
  sessionStorage.removeItem(key);
} else {
  sessionStorage.setItem(key, "1");
  location.reload();
}
)";

}  // namespace

void handle_ask_again(StatusContext&, StatusCall call) {
  call.exchange->reply(200, {{"Content-Type", "text/javascript; charset=utf-8"}}, kAskAgain);
}

void handle_page_file(StatusContext&, StatusCall call) {
  const PageFile* file = find_page_file(call.request().path);
  if (file == nullptr) return reply_error(*call.exchange, 404, "the page has no such file");
  HttpContent content;
  content.bytes = file->gzip;
  content.gzipped = true;
  content.type = file->content_type;
  content.version = file->etag;
  HttpContentAnswer answer = answer_content(call.request(), content);
  // Kept, and asked about each time: another run may listen here tomorrow.
  answer.headers.emplace_back("Cache-Control", "no-cache");
  call.exchange->reply(answer.status, std::move(answer.headers), std::move(answer.body));
}

}  // namespace muster
