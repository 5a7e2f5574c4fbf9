// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace doubles {

// A file descriptor that is closed in the end.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "Stop waiting": raised once, from any thread; whoever waits on a socket waits on it too.
class StopSignal {
 public:
  StopSignal();
  void raise();
  bool raised() const { return raised_.load(); }
  void wait() const;
  int fd() const { return fd_.get(); }

 private:
  std::atomic<bool> raised_{false};
  Fd fd_;
};

enum class Outcome { kDone, kStopped, kLost };  // kLost: the other side has gone

// Bytes that go one way over one socket.
struct Piece {
  int fd = -1;
  std::byte* data = nullptr;  // not written to when sending
  size_t bytes = 0;
  bool send = false;

  static Piece to(int fd, const void* data, size_t bytes) {
    return {fd, const_cast<std::byte*>(static_cast<const std::byte*>(data)), bytes, true};
  }
  static Piece from(int fd, void* data, size_t bytes) {
    return {fd, static_cast<std::byte*>(data), bytes, false};
  }
};

// Moves all pieces, at the same time; those of one socket and direction one after the other. There
// is no framing: two sides that disagree about sizes wait for ever or take the wrong bytes.
Outcome exchange(std::vector<Piece> pieces, const StopSignal& stop);

// A listening socket of this host's address (NCCL_SOCKET_IFNAME chooses the interface), or nothing
// where there is no such interface.
std::optional<in_addr> interface_address();
Fd listen_at(in_addr host, sockaddr_in* address);
// Connects; a refusal is tried again for a second.
Outcome connect_to(const sockaddr_in& address, const StopSignal& stop, Fd* out);
// The next connection.
Outcome accept_from(int listener, const StopSignal& stop, Fd* out);

std::string address_text(const sockaddr_in& address);

}  // namespace doubles
