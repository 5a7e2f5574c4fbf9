// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "loop/result.h"

namespace muster {

// An IPv4 or IPv6 address with its port. A small value: copied freely, never looked up anywhere.
class SocketAddress {
 public:
  SocketAddress() = default;

  // `address` is a literal ("127.0.0.1", "::1", "fe80::1%eth0"); a host name is an error.
  static Result<SocketAddress> parse(const std::string& address, int port);

  // The local address of a bound socket.
  static SocketAddress local(int fd);

  // "127.0.0.1:29500" or "[::1]:29500"; an IPv4 peer of a dual-stack socket is shown as IPv4.
  std::string to_string() const;

  int port() const;
  int family() const { return storage_.any.sa_family; }

  // For the socket calls. `size` is in and out for accept and its like.
  sockaddr* raw() { return &storage_.any; }
  const sockaddr* raw() const { return &storage_.any; }
  socklen_t size() const;
  static constexpr socklen_t kCapacity = sizeof(sockaddr_in6);

 private:
  union {
    sockaddr_in6 v6;
    sockaddr_in v4;
    sockaddr any;
  } storage_{};
};

}  // namespace muster
