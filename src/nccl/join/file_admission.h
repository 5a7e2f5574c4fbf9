// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "nccl/join/file_store.h"
#include "nccl/join/identity.h"
#include "nccl/join/place.h"
#include "store/table.h"

namespace muster::comm::detail {

// Whether a file belongs to this job, or was left behind by an earlier one. Everybody who enters
// writes down who he is. Nobody leaves before all have come, so for one who comes, a dead member is
// one of an earlier job: the file is begun anew. What is on another host, or in another container,
// cannot be asked; only if this rank itself is there already does that stand in the way, and it is
// an error that names the file. A job of this very run with a lower attempt is an earlier one too.
//
// EEXIST: somebody else is in the way.
muster::Result<FileStore::Admission> admission(const Table& table, bool local_disk,
                                               const Place& place, const Identity& self,
                                               const std::string& file);

std::pair<std::string, std::string> leaving_record(const Place& place);

// Of those who entered, all have left or died.
bool nobody_left(const Table& table, const Place& place, const Identity& self);

}  // namespace muster::comm::detail
