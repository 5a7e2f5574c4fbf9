// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "loop/result.h"

namespace muster {

// An IPv4 or IPv6 address with its port. A small value: copied freely, never looked up anywhere.
// An IPv4 address in IPv6's clothes (::ffff:10.0.0.1) is the IPv4 address everywhere.
class SocketAddress {
 public:
  SocketAddress() = default;

  // `address` is a literal ("127.0.0.1", "::1", "fe80::1%eth0"); a host name is an error.
  static Result<SocketAddress> parse(const std::string& address, int port);

  // What the kernel gave out; anything but IPv4 and IPv6 becomes an address of no family.
  static SocketAddress from(const sockaddr* address);

  // The local address of a bound socket.
  static SocketAddress local(int fd);

  // "127.0.0.1:29500" or "[fe80::1%eth0]:29500".
  std::string to_string() const;

  // "127.0.0.1" or "fe80::1%eth0", which parse() takes back.
  std::string host() const;

  int port() const;
  SocketAddress with_port(int port) const;

  // Loopback is all of 127.0.0.0/8 and ::1; unspecified are 0.0.0.0 and "::".
  bool is_loopback() const;
  bool is_unspecified() const;
  bool is_link_local() const;

  // The same address whatever the ports; a link-local one on the same interface.
  bool same_host(const SocketAddress& other) const;
  bool operator==(const SocketAddress& other) const;

  int family() const { return storage_.any.sa_family; }

  // For the socket calls. `size` is in and out for accept and its like.
  sockaddr* raw() { return &storage_.any; }
  const sockaddr* raw() const { return &storage_.any; }
  socklen_t size() const;
  static constexpr socklen_t kCapacity = sizeof(sockaddr_in6);

 private:
  SocketAddress unmapped() const;

  union {
    sockaddr_in6 v6;
    sockaddr_in v4;
    sockaddr any;
  } storage_{};
};

}  // namespace muster
