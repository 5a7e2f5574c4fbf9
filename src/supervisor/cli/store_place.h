// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/cli/options.h"
#include "supervisor/cli/rendezvous_plan.h"

namespace muster {

struct StorePlace {
  std::string run_id;
  std::string master_addr;
  std::string bind;
  int port = 0;  // 0: any free one
};

// The run id, and where the workers of one node meet. With several nodes only the id and the port
// are known before they have met: the address and where to listen stay empty.
StorePlace choose_store_place(const Options& options, const RendezvousPlan& rendezvous);

// Where the store listens so that workers reach it by `host`: the address itself if it is one,
// loopback for localhost, everywhere for other names, which are never looked up.
std::string bind_address_for(const std::string& host);

// A random UUID in its usual text form.
std::string random_uuid();

// `run_id` as part of a folder's name: no '/', no control characters, not hidden, not too long.
std::string folder_name_for(const std::string& run_id);

}  // namespace muster
