// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "loop/http_client.h"
#include "supervisor/rendezvous/etcd_office.h"

namespace muster {

// The office as a key with a time to live in etcd's v2 keys API: created only if it is not there,
// refreshed and deleted only while it holds what we wrote. `key` begins with a slash, and
// `deadline` is for one request.
std::unique_ptr<EtcdOffice> etcd_v2_office(std::unique_ptr<HttpClient> client,
                                           const std::string& key, Milliseconds deadline);

}  // namespace muster
