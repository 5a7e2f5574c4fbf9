// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "loop/http_server.h"

namespace muster {

// The same exchange, with the headers on its answer that keep browsers from doing more with it than
// showing it: no script, style or frame of others, no guessing of types, nothing said to or shared
// with other sites, nothing kept in caches. A handler may say more of Cache-Control and the policy
// and cannot forget the rest.
std::unique_ptr<HttpExchange> secured(std::unique_ptr<HttpExchange> exchange);

}  // namespace muster
