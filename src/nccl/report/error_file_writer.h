// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace muster::comm::detail {

// Writes the file in which a worker tells why it fails, in the form of PyTorch's @record.
// Everything but prepare() may be called in a signal handler. A global: constant initialised, never
// destroyed.
class ErrorFileWriter {
 public:
  // Where; nullptr or "" or too long: nowhere.
  void prepare(const char* path);

  // Replaces what was written before. The file is whole at any time, or not there. False: it could
  // not be written.
  // `comm_error`: to_string() of an Error's code, by which the launcher tells who only lost a peer.
  bool write(std::string_view message, std::string_view callstack,
             std::string_view comm_error = {}) const;

  // Removes what a write() that never came back has left.
  void clean_up() const;

 private:
  static constexpr size_t kMaxPath = 4096;
  std::array<char, kMaxPath> path_{};
  std::array<char, kMaxPath> temporary_{};
};

// Writes all of it, whatever it takes. False: the descriptor does not take it.
bool write_all(int fd, std::string_view bytes);

}  // namespace muster::comm::detail
