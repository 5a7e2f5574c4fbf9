// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// The standard alphabet, padded, in one line: etcd's keys and values inside JSON.
std::string base64_encode(std::string_view bytes);

// Nothing if the text is not exactly what base64_encode gives for some bytes.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace muster
