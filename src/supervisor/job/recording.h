// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster {

// Where PyTorch's flight recorder, its record of the last collectives, writes in a worker's folder,
// which the error file is in too: PyTorch adds the rank. "" without logs.
inline std::string recording_beside(const std::string& error_file) {
  if (error_file.empty()) return "";
  return error_file.substr(0, error_file.rfind('/') + 1) + "flight_recorder_";
}

}  // namespace muster
