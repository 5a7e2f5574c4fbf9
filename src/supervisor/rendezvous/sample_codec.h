// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/status/rank_sample.h"

namespace muster {

// Samples as they travel: some 30 bytes each, and what workers tell of their operations. The first
// byte is a version; docs/control-protocol.md has the layout.

// Most samples in one message; more are for the next.
inline constexpr size_t kMaxSamplesPerMessage = 1024;

// And most bytes of them, so that they fit into a frame.
inline constexpr size_t kMaxSampleBytes = size_t{512} << 10;
size_t most_bytes_of(const RankSample& sample);

// What is out of range in a sample is left out as unknown. At most kMaxSamplesPerMessage.
std::string encode_samples(int attempt, const std::vector<RankSample>& samples);

// False: malformed. Bytes behind the samples are a later version's, and ignored.
bool decode_samples(std::string_view bytes, int& attempt, std::vector<RankSample>& samples);

}  // namespace muster
