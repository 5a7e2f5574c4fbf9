// SPDX-License-Identifier: Apache-2.0
#include "store/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// Milliseconds until the deadline for poll, rounded up so that it does not wake early and spin.
int poll_timeout(Deadline deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

// 0 when ready, else an errno.
int wait_ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd poller{fd, events, 0};
    int ready = ::poll(&poller, 1, poll_timeout(deadline));
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return errno;
    if (ready == 0 && Clock::now() >= deadline) return ETIMEDOUT;
  }
}

// What a resolving thread leaves behind, also when nobody waits for it any more.
struct Lookup {
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  int status = 0;
  std::vector<Address> addresses;
};

std::vector<Address> copy_addresses(const addrinfo* list) {
  std::vector<Address> result;
  for (; list != nullptr; list = list->ai_next) {
    Address address;
    std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
    address.size = list->ai_addrlen;
    result.push_back(address);
  }
  return result;
}

int look_up(const std::string& host, const std::string& port, int flags,
            std::vector<Address>& addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (status != 0) return status;
  addresses = copy_addresses(found);
  freeaddrinfo(found);
  return 0;
}

// getaddrinfo has no timeout of its own and a dead name server holds it for half a minute: a thread
// asks, and is left alone when the deadline passes.
Result<std::vector<Address>> resolve(const std::string& host, int port, Deadline deadline) {
  const std::string port_text = std::to_string(port);
  std::vector<Address> addresses;
  if (look_up(host, port_text, AI_NUMERICHOST, addresses) == 0) return addresses;
  auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, host, port_text] {
    std::vector<Address> found;
    int status = look_up(host, port_text, 0, found);
    std::lock_guard lock(lookup->mutex);
    lookup->done = true;
    lookup->status = status;
    lookup->addresses = std::move(found);
    lookup->ready.notify_all();
  }).detach();
  std::unique_lock lock(lookup->mutex);
  if (!lookup->ready.wait_until(lock, deadline, [&] { return lookup->done; }))
    return Error{ETIMEDOUT, "host '" + host + "': the name server did not answer in time"};
  if (lookup->status != 0)
    return Error{ENOENT, "host '" + host + "': " + gai_strerror(lookup->status)};
  return lookup->addresses;
}

void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

Result<Connection> connect_to(const Address& address, Deadline deadline) {
  const auto* raw = reinterpret_cast<const sockaddr*>(&address.storage);
  UniqueFd fd(::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error(errno, "socket");
  set_options(fd.get());
  if (::connect(fd.get(), raw, address.size) != 0) {
    if (errno != EINPROGRESS) return errno_error(errno, "connect");
    if (int code = wait_ready(fd.get(), POLLOUT, deadline)) return errno_error(code, "connect");
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) return errno_error(code, "connect");
  }
  return Connection(std::move(fd));
}

}  // namespace

Connection::Connection(UniqueFd socket)
    : socket_(std::move(socket)), buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

Result<Connection> dial(const std::string& host, int port, Deadline deadline) {
  Result<std::vector<Address>> addresses = resolve(host, port, deadline);
  if (!addresses) return addresses.error();
  Error last{ENOENT, "host '" + host + "': no address"};
  for (size_t i = 0; i < addresses->size(); ++i) {
    // An address that swallows packets gets its share of the time, not all of it.
    const auto now = Clock::now();
    const auto share = (deadline - now) / static_cast<int64_t>(addresses->size() - i);
    Result<Connection> connection = connect_to((*addresses)[i], now + share);
    if (connection) return connection;
    last = connection.error();
  }
  return last;
}

Result<void> Connection::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (int code = wait_ready(socket_.get(), POLLOUT, deadline)) return errno_error(code, "send");
    } else if (errno != EINTR) {
      return errno_error(errno, "send");
    }
  }
  return {};
}

// Makes at least `size` bytes, fewer than the buffer holds, available from begin_ on.
Result<void> Connection::fill(size_t size, Deadline deadline) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (kBuffer - begin_ < size) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < size) {
    ssize_t got = ::recv(socket_.get(), buffer_.get() + end_, kBuffer - end_, 0);
    if (got > 0) {
      end_ += static_cast<size_t>(got);
    } else if (got == 0) {
      return Error{ECONNRESET, "the server closed the connection"};
    } else if (errno == EAGAIN) {
      if (int code = wait_ready(socket_.get(), POLLIN, deadline))
        return errno_error(code, "receive");
    } else if (errno != EINTR) {
      return errno_error(errno, "receive");
    }
  }
  return {};
}

Result<std::string> Connection::receive(uint64_t size, Deadline deadline) {
  std::string bytes;
  while (bytes.size() < size) {
    if (Result<void> filled = fill(1, deadline); !filled) return filled.error();
    const size_t take = std::min<uint64_t>(end_ - begin_, size - bytes.size());
    bytes.append(buffer_.get() + begin_, take);
    begin_ += take;
  }
  return bytes;
}

}  // namespace muster
