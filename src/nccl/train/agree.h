// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <string>

namespace muster::train::detail {

// A step that each rank has done for itself, well or not: well for all, or an error that is the
// same on all ranks and names those that failed. Called by all.
comm::Result<void> agree(comm::Communicator& communicator, const comm::Result<void>& mine);

// Rank 0's text to all.
comm::Result<std::string> share(comm::Communicator& communicator, const std::string& text);

}  // namespace muster::train::detail
