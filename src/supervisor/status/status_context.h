// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loop/http_server.h"
#include "loop/loop.h"
#include "supervisor/browse/log_reader.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/sessions.h"

namespace muster {

class EventHub;

// What the handlers of the status server work with. Owned by it; everything here outlives every
// session.
struct StatusContext {
  Loop& loop;
  JobSource& source;
  LogReader& reader;
  EventHub& hub;
  Sessions& sessions;
};

// A request that found its handler.
struct StatusCall {
  std::unique_ptr<HttpExchange> exchange;
  std::vector<std::string> captures;  // what stands at the {names} of the route, in order
  bool forwarded = false;             // from another node: it is not passed on again

  const HttpServerRequest& request() const { return exchange->request(); }
};

// Answers at once, or makes a session that does.
using StatusHandler = void (*)(StatusContext& context, StatusCall call);

}  // namespace muster
