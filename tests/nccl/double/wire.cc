// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace doubles {
namespace {

constexpr int kRefusals = 100;
constexpr int kRefusalWaitMs = 10;
constexpr int kBacklog = 256;

void prepare_socket(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// Moves what can be moved now. false: the other side has gone.
bool move_some(Piece& piece) {
  while (piece.bytes > 0) {
    ssize_t moved = piece.send ? send(piece.fd, piece.data, piece.bytes, MSG_NOSIGNAL)
                               : recv(piece.fd, piece.data, piece.bytes, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno == EAGAIN;
    if (moved == 0) return false;
    piece.data += moved;
    piece.bytes -= static_cast<size_t>(moved);
  }
  return true;
}

// The first unfinished piece of each socket and direction may move, the others wait behind it.
bool is_first(const std::vector<Piece>& pieces, size_t index) {
  const Piece& piece = pieces[index];
  return std::none_of(
      pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(index),
      [&](const Piece& other) { return other.fd == piece.fd && other.send == piece.send; });
}

// Waits for one of them or the signal.
void wait_any(std::vector<pollfd>& waits, const StopSignal& stop) {
  waits.push_back({stop.fd(), POLLIN, 0});
  poll(waits.data(), waits.size(), -1);
}

Outcome wait_ready(int fd, short events, const StopSignal& stop) {
  std::vector<pollfd> waits{{fd, events, 0}};
  wait_any(waits, stop);
  return stop.raised() ? Outcome::kStopped : Outcome::kDone;
}

// NCCL_SOCKET_IFNAME: names' beginnings, "=name" for exactly, "^..." for all others.
bool interface_matches(const std::string& name, std::string wanted) {
  bool except = wanted.starts_with("^");
  bool exact = false;
  if (except) wanted.erase(0, 1);
  if (wanted.starts_with("=")) exact = true, wanted.erase(0, 1);
  bool found = false;
  for (size_t at = 0; at <= wanted.size();) {
    size_t comma = std::min(wanted.find(',', at), wanted.size());
    std::string word = wanted.substr(at, comma - at);
    found |= exact ? name == word : !word.empty() && name.starts_with(word);
    at = comma + 1;
  }
  return found != except;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

StopSignal::StopSignal() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void StopSignal::raise() {
  raised_.store(true);
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(fd_.get(), &one, sizeof one);
}

void StopSignal::wait() const {
  while (!raised()) {
    pollfd wait{fd_.get(), POLLIN, 0};
    poll(&wait, 1, -1);
  }
}

Outcome exchange(std::vector<Piece> pieces, const StopSignal& stop) {
  while (true) {
    if (stop.raised()) return Outcome::kStopped;
    std::vector<pollfd> waits;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (!is_first(pieces, i)) continue;
      if (!move_some(pieces[i])) return Outcome::kLost;
      short event = pieces[i].send ? POLLOUT : POLLIN;
      if (pieces[i].bytes > 0) waits.push_back({pieces[i].fd, event, 0});
    }
    size_t removed = std::erase_if(pieces, [](const Piece& piece) { return piece.bytes == 0; });
    if (pieces.empty()) return Outcome::kDone;
    if (removed == 0) wait_any(waits, stop);
  }
}

std::optional<in_addr> interface_address() {
  const char* wanted = std::getenv("NCCL_SOCKET_IFNAME");
  if (!wanted || !*wanted) return in_addr{htonl(INADDR_LOOPBACK)};
  std::optional<in_addr> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (ifaddrs* entry = all; entry && !found; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (!interface_matches(entry->ifa_name, wanted)) continue;
    found = reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr;
  }
  freeifaddrs(all);
  return found;
}

Fd listen_at(in_addr host, sockaddr_in* address) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr = host;
  socklen_t size = sizeof *address;
  auto* plain = reinterpret_cast<sockaddr*>(address);
  if (bind(fd.get(), plain, size) != 0 || listen(fd.get(), kBacklog) != 0) return {};
  getsockname(fd.get(), plain, &size);
  return fd;
}

Outcome connect_to(const sockaddr_in& address, const StopSignal& stop, Fd* out) {
  for (int tries = 0; tries < kRefusals; ++tries) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    prepare_socket(fd.get());
    int failed = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (failed != 0 && errno == EINPROGRESS) {
      if (wait_ready(fd.get(), POLLOUT, stop) == Outcome::kStopped) return Outcome::kStopped;
      socklen_t size = sizeof failed;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    if (failed == 0) {
      *out = std::move(fd);
      return Outcome::kDone;
    }
    pollfd wait{stop.fd(), POLLIN, 0};
    if (poll(&wait, 1, kRefusalWaitMs) > 0) return Outcome::kStopped;
  }
  return Outcome::kLost;
}

Outcome accept_from(int listener, const StopSignal& stop, Fd* out) {
  while (true) {
    if (wait_ready(listener, POLLIN, stop) == Outcome::kStopped) return Outcome::kStopped;
    Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) continue;
    prepare_socket(fd.get());
    *out = std::move(fd);
    return Outcome::kDone;
  }
}

std::string address_text(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return std::string(text) + "<" + std::to_string(ntohs(address.sin_port)) + ">";
}

}  // namespace doubles
