// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loop/http_exchange.h"

namespace muster {

// What of a browser's request and of its answer travels between nodes. Nothing of it can break out
// of a header's line, and no secret goes along.

// Longest target (a cursor of many logs is long), and headers beyond which the rest is left out.
inline constexpr size_t kMaxTarget = size_t{16} << 10;
inline constexpr size_t kMaxForwardedHeaders = 32;
inline constexpr size_t kMaxHeaderName = 64;
inline constexpr size_t kMaxHeaderBytes = size_t{24} << 10;  // of all names and values

// "/..." in printable ASCII, not too long.
bool is_target(std::string_view target);

// Names in lower case, values in printable ASCII, neither too many nor too long.
bool are_headers(const HttpHeaders& headers);

// Leaves out what are_headers() would not allow.
void keep_headers(HttpHeaders& headers);

// Those of a request that change what is answered; no cookie, no authorization.
HttpHeaders headers_to_ask_with(const HttpHeaders& headers);

// Those of an answer that are not about a connection, a client or a session.
HttpHeaders headers_to_answer_with(const HttpHeaders& headers);

// The target without the job's token.
std::string target_to_ask_for(const HttpServerRequest& request);

// The request as the node's own handler gets it; nullopt if the target is malformed.
std::optional<HttpServerRequest> forwarded_request(std::string target, HttpHeaders headers);

}  // namespace muster
