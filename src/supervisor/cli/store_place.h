// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "loop/result.h"
#include "supervisor/cli/options.h"
#include "supervisor/cli/rendezvous_plan.h"

namespace muster {

struct StorePlace {
  Meeting meeting = Meeting::kLocal;
  std::string run_id;
  std::string master_addr;
  std::string bind;
  int port = 0;  // 0: any free one
};

// The error's code is 2. Refuses jobs of several nodes.
Result<StorePlace> choose_store_place(const Options& options);

// Where the store listens so that workers reach it by `host`: the address itself if it is one,
// loopback for localhost, everywhere for other names, which are never looked up.
std::string bind_address_for(const std::string& host);

// A random UUID in its usual text form.
std::string random_uuid();

// `run_id` as part of a folder's name: no '/', no control characters, not hidden, not too long.
std::string folder_name_for(const std::string& run_id);

}  // namespace muster
