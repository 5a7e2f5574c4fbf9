// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/socket_address.h"
#include "loop/unique_fd.h"
#include "store/deadline.h"

namespace muster {

// A blocking TCP connection whose every step has a deadline; passing it is ETIMEDOUT. After an
// error the connection is of no use. Messages say what failed, not to whom.
class Connection {
 public:
  // Takes a connected, non-blocking socket.
  explicit Connection(UniqueFd socket);

  Result<void> send(std::string_view bytes, Deadline deadline);

  // Exactly `size` bytes. Memory grows as they arrive.
  Result<std::string> receive(uint64_t size, Deadline deadline);

  template <typename Int>
  Result<Int> receive_int(Deadline deadline) {
    if (Result<void> filled = fill(sizeof(Int), deadline); !filled) return filled.error();
    Int value;
    std::memcpy(&value, buffer_.get() + begin_, sizeof value);
    begin_ += sizeof value;
    return value;
  }

  SocketAddress local_address() const { return SocketAddress::local(socket_.get()); }

 private:
  static constexpr size_t kBuffer = size_t{64} << 10;

  Result<void> fill(size_t size, Deadline deadline);

  UniqueFd socket_;
  std::unique_ptr<char[]> buffer_;  // received and not yet handed out: [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Resolves a name and connects, trying each address it has, once. The error's code is the last
// address's errno, or ENOENT if the name was not found.
Result<Connection> dial(const std::string& host, int port, Deadline deadline);

}  // namespace muster
