// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "loop/unique_fd.h"

namespace muster {

// Stands where a log file is to be and takes nothing, like a disk that hangs, until take() is
// called: a named pipe that is full.
class StalledFile {
 public:
  explicit StalledFile(const std::string& path) {
    signal(SIGPIPE, SIG_IGN);  // whoever still writes when we go gets an error
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    reader_.reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    UniqueFd filler(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE((reader_ && filler));
    const std::string piece(4096, '#');
    while (write(filler.get(), piece.data(), piece.size()) > 0)
      filling_ += piece.size();
  }

  // What was written to it so far and could not be taken before.
  std::string take() {
    std::string all;
    char bytes[65536];
    for (ssize_t n; (n = read(reader_.get(), bytes, sizeof bytes)) > 0;)
      all.append(bytes, static_cast<size_t>(n));
    const size_t filling = std::min(filling_, all.size());
    filling_ -= filling;
    return all.substr(filling);
  }

 private:
  UniqueFd reader_;
  size_t filling_ = 0;
};

}  // namespace muster
