// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"

namespace muster {

// PyTorch's flight recorder is its record of the last collectives. It writes it into a file, its
// dump, when a collective fails, and whenever something is written into a pipe that it makes.

// Where it writes in a worker's folder, which the error file is in too: PyTorch adds the rank. ""
// without logs.
std::string recording_beside(const std::string& error_file);

// The whole name, "" without logs.
std::string dump_of(const std::string& error_file, int rank);

// The pipe's name is the dump's and this.
inline constexpr std::string_view kRecordingPipe = ".pipe";

// Whether a program that muster starts is Python itself. One that is started in between, a
// container's, may see other folders or be another user, and where PyTorch cannot make the pipe
// that it was told to make, it ends the training.
bool is_python(const std::string& executable);

// The same question about the folder. Makes such a pipe, and removes it.
bool can_hold_pipes(const std::string& recording);

// Removes, in the pool, the pipes of an attempt that is over: who reads all files of a folder would
// wait in one for ever.
void remove_recording_pipes(Loop& loop, std::vector<std::string> dumps);

}  // namespace muster
