// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/page_endpoint.h"

#include <utility>

#include "loop/http_content.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/page_files.h"

namespace muster {

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
