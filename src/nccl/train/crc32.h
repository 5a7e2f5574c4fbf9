// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::train::detail {

// The CRC-32 of zlib, PNG and Python's zlib.crc32: of bytes that go on where `crc` ended.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

std::string crc32_text(uint32_t crc);  // eight hex digits

}  // namespace muster::train::detail
