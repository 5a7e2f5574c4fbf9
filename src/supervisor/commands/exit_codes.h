// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace muster {

// What the commands exit with.
inline constexpr int kExitFine = 0;
inline constexpr int kExitBad = 1;       // the job failed; nothing was found; the port was taken
inline constexpr int kExitUsage = 2;     // the command line is wrong, or asks for what is not there
inline constexpr int kExitNoRun = 3;     // there is no such run
inline constexpr int kExitNoAnswer = 4;  // it is there, but cannot be asked

}  // namespace muster
