// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// A new pseudo-terminal. What is written to the slave comes out of the master byte for byte (no
// "\n" to "\r\n"), and input is not echoed, because the terminal it comes from has done that.
struct Pty {
  UniqueFd master;  // nonblocking
  UniqueFd slave;
};

// With the window size of `like`, if that is a terminal.
Result<Pty> open_pty(int like);

// Gives `pty` the window size that the terminal `like` has now.
void follow_window_size(int like, int pty);

// Whether `fd` is a terminal whose foreground job is another one than ours: reading it would take
// the input of the shell. It is asked about muster's front, our parent, because we have left the
// terminal's session ourselves.
bool in_background(int fd);

}  // namespace muster
