// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "loop/http_client.h"
#include "supervisor/rendezvous/etcd_office.h"

namespace muster {

// The office as a key bound to a lease in etcd's v3 API, spoken as JSON over its gateway.
// `deadline` is for one request.
std::unique_ptr<EtcdOffice> etcd_v3_office(std::unique_ptr<HttpClient> client,
                                           const std::string& key, Milliseconds deadline);

}  // namespace muster
