// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl/gloo/mesh.h"

namespace muster::comm::detail {

// Does a collective, by Gloo's own algorithm where it has one that fits, otherwise by exchange.h.
// One at a time. Throws GlooFailure, and what Gloo throws.
void perform(Mesh& mesh, const Operation& operation, Deadline deadline);

// The same for a group of one.
void perform_alone(const Operation& operation);

}  // namespace muster::comm::detail
