// SPDX-License-Identifier: Apache-2.0
// The words for what was found around a worker at its death.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/diagnosis/facts.h"

namespace muster {

// That memory had run out, from the cgroup's counters or the kernel's log; nullopt if neither says
// so.
std::optional<FoundLine> memory_line(const Evidence& evidence);

// "/dev/shm has no room: 0 B of space left".
std::string disk_line(const FullDisk& disk);

// That its GPU or the GPU's links failed, from the kernel's log.
std::optional<FoundLine> gpu_fault_line(const Evidence& evidence);

// event::FailureFound::evidence: all of it, a line each, what says most first.
std::vector<std::string> evidence_lines(const Evidence& evidence, std::string_view kind);

}  // namespace muster
