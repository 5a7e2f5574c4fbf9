// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "loop/socket_address.h"
#include "loop/unique_fd.h"

namespace muster {

// Who is at the other end of a TCP connection of this machine: the user that made the socket there,
// as the kernel knows it (sock_diag(7)). Owned by the status server.
class PeerUser {
 public:
  // `peer` and `local` are the ends as seen from here. Nothing if the other end is not on this
  // machine, is closed already, or the kernel does not say. Waits for nothing.
  std::optional<uid_t> ask(const SocketAddress& peer, const SocketAddress& local);

 private:
  UniqueFd socket_;
};

}  // namespace muster
