// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/access.h"
#include "supervisor/status/download_endpoint.h"
#include "supervisor/status/events_endpoint.h"
#include "supervisor/status/follow_endpoint.h"
#include "supervisor/status/job_endpoints.h"
#include "supervisor/status/log_endpoint.h"
#include "supervisor/status/merged_endpoint.h"
#include "supervisor/status/page_endpoint.h"
#include "supervisor/status/router.h"
#include "supervisor/status/samples_endpoint.h"
#include "supervisor/status/search_endpoint.h"
#include "supervisor/status/series_endpoint.h"
#include "supervisor/status/status_endpoint.h"

namespace muster {

std::span<const Route> status_routes() {
  static constexpr Route kRoutes[] = {
      {"GET", kAskAgainPath, handle_ask_again},
      {"GET", "/healthz", handle_healthz},
      {"GET", "/metrics", handle_metrics},
      {"GET", "/status", handle_status},
      {"GET", "/api/v1/job", handle_job},
      {"GET", "/api/v1/nodes", handle_nodes},
      {"GET", "/api/v1/attempts", handle_attempts},
      {"GET", "/api/v1/ranks", handle_ranks},
      {"GET", "/api/v1/failures", handle_failures},
      {"GET", "/api/v1/samples", handle_samples},
      {"GET", "/api/v1/events", handle_events},
      {"GET", "/api/v1/follow", handle_follow},
      {"GET", "/api/v1/search", handle_search},
      {"GET", "/api/v1/download", handle_download},
      {"GET", "/api/v1/logs/{attempt}/{rank}/{stream}", handle_log},
      {"GET", "/api/v1/merged", handle_merged},
      {"GET", "/api/v1/series/{attempt}/{rank}", handle_series},
      {"POST", "/api/v1/stop", handle_stop},
      {"POST", "/api/v1/restart", handle_restart},
      {"POST", "/api/v1/dump", handle_dump},
  };
  return kRoutes;
}

}  // namespace muster
