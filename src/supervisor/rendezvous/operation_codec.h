// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/collectives.h"
#include "supervisor/rendezvous/packed.h"

namespace muster {

// What workers were doing (rank_operations.h) as it travels, some 20 bytes for an operation.
// docs/control-protocol.md has the layout.

// What one rank's may take; communicators that do not fit are left out, open ones last.
inline constexpr size_t kMaxOperationBytes = size_t{16} << 10;
// What those of a node may take in its outcome. Ranks whose operations do not fit tell their end
// alone.
inline constexpr size_t kMaxOutcomeOperations = size_t{128} << 10;

std::string encode_operations(const RankOperations& operations);
// Malformed: `reader` is bad afterwards. Takes what encode_operations() made and no more.
void decode_operations(packed::Reader& reader, RankOperations& operations);

// Of a node, for its outcome. The first byte is a version.
std::string encode_known_ranks(const std::vector<KnownRank>& known);
// False: malformed.
bool decode_known_ranks(std::string_view bytes, std::vector<KnownRank>& known);

}  // namespace muster
