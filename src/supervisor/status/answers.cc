// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/answers.h"

#include <utility>

#include "supervisor/status/json_out.h"

namespace muster {

std::string error_json(int status, std::string_view message, std::string_view hint) {
  std::string text;
  JsonOut out(text, JsonOut::Layout::kLines);
  out.begin_object();
  out.key("error");
  out.begin_object();
  out.field("status", status);
  out.field("message", message);
  if (!hint.empty()) out.field("hint", hint);
  out.end_object();
  out.end_object();
  text += '\n';
  return text;
}

void reply_error(HttpExchange& exchange, int status, std::string_view message,
                 std::string_view hint) {
  exchange.reply(status, {{"Content-Type", "application/json"}}, error_json(status, message, hint));
}

void reply_json(HttpExchange& exchange, std::string body) {
  exchange.reply(200, {{"Content-Type", "application/json"}}, std::move(body));
}

void reply_text(HttpExchange& exchange, int status, std::string body) {
  exchange.reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body));
}

}  // namespace muster
