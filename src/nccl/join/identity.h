// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::comm::detail {

// Who a member is, so that others can tell whether it is on their host and still lives: process ids
// alone come back, and mean something only on their host, until it boots again, in their namespace.
struct Identity {
  std::string host{};       // its name, for people
  std::string boot{};       // the kernel's id of this boot
  std::string pid_space{};  // the namespaces that a process id and loopback belong to
  std::string net_space{};
  int64_t pid = 0;
  uint64_t started = 0;  // clock ticks since the boot
  uint64_t serial = 0;   // memberships of one process are told apart by it

  static Identity own();  // with a serial of its own each time

  std::string encode() const;
  static std::optional<Identity> decode(std::string_view bytes);

  bool operator==(const Identity&) const = default;

  // Whether a process id of one means the same to the other.
  bool same_host(const Identity& other) const;
  // Asked on its own host only.
  bool lives() const;

  std::string to_string() const;  // "pid 4711 on node7"
};

}  // namespace muster::comm::detail
