// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loop/http_message.h"
#include "loop/result.h"
#include "supervisor/rendezvous/etcd_office.h"

namespace muster {

// What etcd's answers mean, pure. Everything in them is checked: between us and etcd may stand
// anything. Errors read as in EtcdOffice.

// The v2 keys API.
Result<OfficeView> v2_view(const HttpResponse& answer);
// Of a request with a condition: whether the condition held.
Result<bool> v2_done(const HttpResponse& answer);

// The v3 API as JSON.
struct V3Entry {
  std::string value;
  int64_t lease = 0;
};
struct V3View {
  std::optional<V3Entry> entry;
  int64_t revision = 0;
};
Result<V3View> v3_view(const HttpResponse& answer);
struct V3Lease {
  int64_t id = 0;
  int64_t seconds = 0;  // 0 of a lease that is renewed: it has ended
};
Result<V3Lease> v3_lease(const HttpResponse& answer);
Result<V3Lease> v3_kept_lease(const HttpResponse& answer);
// Of a transaction: whether the comparison held.
Result<bool> v3_done(const HttpResponse& answer);
// One line of a watch: whether it tells of a change, or of the watch's end.
Result<bool> v3_changed(std::string_view line);

}  // namespace muster
