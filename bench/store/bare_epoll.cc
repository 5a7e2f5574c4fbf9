// SPDX-License-Identifier: Apache-2.0
//
// The floor that bench/store/store.py measures the store against: a loop of epoll_wait, recv and
// send that answers GET, ADD, PING, CHECK and WAIT with the right bytes and does nothing else. It
// keeps no keys (every GET has the same value, every ADD the same counter), has no limits, no queue
// for what the kernel does not take, and trusts that a request arrives whole.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kValueSize = 16;  // what store.py's load puts there
constexpr int kEvents = 1024;

char input[256 << 10];
char output[256 << 10];
int64_t counter = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

uint64_t read_u64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

size_t put(size_t at, const void* bytes, size_t size) {
  std::memcpy(output + at, bytes, size);
  return at + size;
}

size_t put_value(size_t at) {
  static const char value[kValueSize + 1] = "vvvvvvvvvvvvvvvv";
  const uint64_t size = kValueSize;
  return put(put(at, &size, sizeof size), value, size);
}

// Answers the requests in input[0, size); the size of the answers.
size_t answer(size_t size) {
  size_t at = 0, out = 0;
  while (at < size) {
    switch (input[at++]) {
      case 0:  // VALIDATE
        at += 4;
        break;
      case 1:  // SET
        at += 8 + read_u64(input + at);
        at += 8 + read_u64(input + at);
        break;
      case 3:  // GET
        at += 8 + read_u64(input + at);
        out = put_value(out);
        break;
      case 4: {  // ADD
        at += 8 + read_u64(input + at);
        counter += static_cast<int64_t>(read_u64(input + at));
        at += 8;
        out = put(out, &counter, sizeof counter);
        break;
      }
      case 5:    // CHECK
      case 6: {  // WAIT
        uint64_t keys = read_u64(input + at);
        at += 8;
        while (keys-- > 0)
          at += 8 + read_u64(input + at);
        out = put(out, "", 1);
        break;
      }
      case 13:  // PING
        out = put(out, input + at, 4);
        at += 4;
        break;
      default:
        std::fprintf(stderr, "bare_epoll: query %d\n", input[at - 1]);
        std::exit(1);
    }
  }
  return out;
}

void serve(int epoll, int fd) {
  ssize_t got = recv(fd, input, sizeof input, 0);
  if (got <= 0) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
    close(fd);
    return;
  }
  const size_t size = answer(static_cast<size_t>(got));
  if (size > 0) check(send(fd, output, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "send");
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

}  // namespace

int main() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);

  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  check(bind(listener, raw, size) == 0 && listen(listener, 4096) == 0, "listen");
  getsockname(listener, raw, &size);
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listener);
  watch(epoll, STDIN_FILENO);
  epoll_event events[kEvents];
  for (;;) {
    const int ready = epoll_wait(epoll, events, kEvents, -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[i].data.fd;
      if (fd == STDIN_FILENO) return 0;
      if (fd != listener) {
        serve(epoll, fd);
        continue;
      }
      for (int peer;
           (peer = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
        watch(epoll, peer);
    }
  }
}
