// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "loop/http_server.h"

namespace muster {

// Whole answers in the forms of docs/api.md.

// {"error": {"status": 404, "message": "...", "hint": "..."}}, as bytes.
std::string error_json(int status, std::string_view message, std::string_view hint);

void reply_error(HttpExchange& exchange, int status, std::string_view message,
                 std::string_view hint = "");
void reply_json(HttpExchange& exchange, std::string body);
void reply_text(HttpExchange& exchange, int status, std::string body);

}  // namespace muster
