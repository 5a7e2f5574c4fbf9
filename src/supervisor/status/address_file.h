// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "loop/result.h"

namespace muster {

// A live run leaves its address, with the token, in this file of its folder, for `muster status`
// and `muster logs` of the same user. A run that was killed leaves the file behind, so whoever
// reads it asks run_lives() too.
inline constexpr char kAddressFile[] = "http";

struct RunAddress {
  std::string url;
  std::string host;  // the machine that wrote it
};

// Readable by its owner alone, whole or not there. A few bytes; blocks as long as the disk does.
Result<void> write_address_file(const std::string& run_dir, const std::string& url);
void remove_address_file(const std::string& run_dir);

// The run's address; nullopt if there is none or it is not ours to read.
std::optional<RunAddress> read_address_file(const std::string& run_dir);

// Whether the muster of this run's folder still runs: it holds a lock in there that goes with it.
bool run_lives(const std::string& run_dir);

std::string this_host();

}  // namespace muster
