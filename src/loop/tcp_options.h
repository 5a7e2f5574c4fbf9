// SPDX-License-Identifier: Apache-2.0
// Only for the sources of src/loop/: what every TCP socket of ours is set to.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace muster {

// A vanished peer (host down, cable out) is noticed after idle + count * interval seconds.
constexpr int kKeepAliveIdle = 60;
constexpr int kKeepAliveInterval = 10;
constexpr int kKeepAliveCount = 6;

inline bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// Keep-alive, and no waiting for more to send.
inline bool set_tcp_options(int fd) {
  return set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveCount) &&
         set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace muster
