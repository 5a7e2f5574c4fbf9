// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace muster {

// The terminal on stdout as one page: the alternate screen, without a cursor and without echo. What
// was there before is back whichever way the process ends, short of SIGKILL. One at a time.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // While the process is stopped (Ctrl-Z) the terminal belongs to others.
  void leave();
  void enter();

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  void measure();  // after SIGWINCH

  // `lines` from the `first` on, as many as there is room for, and `foot` in the last row.
  void show(const std::vector<std::string>& lines, size_t first, const std::string& foot);

 private:
  int rows_ = 24;
  int columns_ = 80;
};

}  // namespace muster
