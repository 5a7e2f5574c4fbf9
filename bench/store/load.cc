// SPDX-License-Identifier: Apache-2.0
//
// Clients for bench/store/store.py, all in one process and one epoll loop.
//
//   load PORT run [--connections N] [--idle N] [--legacy]
//     Connects, greets and stores a value per connection, opens N more connections that only greet,
//     and says "ready". Then for each line "get REQUESTS" or "add REQUESTS" on its input it lets
//     every connection send one request after another until that many were answered, and says how
//     many microseconds that took. --legacy speaks the protocol of PyTorch 1.13.
//   load PORT greet N
//     Says how many microseconds N connections took from the first connect to the last greeting.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kValueSize = 16;
constexpr int kEvents = 1024;

int port = 0;
bool legacy = false;

struct Client {
  int fd = -1;
  std::string request;
  size_t reply_size = 0;
  size_t got = 0;
};

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

void put_u64(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string with_key(int current, int old, size_t client) {
  std::string request(1, static_cast<char>(legacy ? old : current));
  const std::string key = "/bench/" + std::to_string(100000 + client);
  put_u64(request, key.size());
  return request + key;
}

std::string greeting() {
  const uint32_t magic = 0x3C85F7CE;
  std::string bytes(1, '\0');
  bytes.append(reinterpret_cast<const char*>(&magic), 4);
  return bytes + std::string(
                     "\x0d"
                     "ping",
                     5);
}

int connect_one(int flags) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  check(fd >= 0, "socket");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int status = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  check(status == 0 || errno == EINPROGRESS, "connect");
  return fd;
}

void send_all(int fd, const std::string& bytes) {
  check(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
        "send");
}

int greeted() {
  const int fd = connect_one(0);
  if (legacy) return fd;
  send_all(fd, greeting());
  char echo[4];
  check(recv(fd, echo, 4, MSG_WAITALL) == 4 && std::memcmp(echo, "ping", 4) == 0, "greeting");
  return fd;
}

void watch(int epoll, int fd, uint32_t events, size_t index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = index;
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

int64_t microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               start)
      .count();
}

// Each client has one request under way until `total` are answered.
int64_t run(int epoll, std::vector<Client>& clients, int64_t total) {
  const auto start = std::chrono::steady_clock::now();
  int64_t started = 0, answered = 0;
  for (Client& client : clients) {
    if (started == total) break;
    ++started;
    send_all(client.fd, client.request);
  }
  epoll_event events[kEvents];
  char buffer[4096];
  while (answered < total) {
    const int ready = epoll_wait(epoll, events, kEvents, -1);
    for (int i = 0; i < ready; ++i) {
      Client& client = clients[events[i].data.u64];
      const ssize_t got = recv(client.fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      check(got > 0, "recv");
      client.got += static_cast<size_t>(got);
      if (client.got < client.reply_size) continue;
      client.got = 0;
      ++answered;
      if (started == total) continue;
      ++started;
      send_all(client.fd, client.request);
    }
  }
  return microseconds_since(start);
}

void obey(std::vector<Client>& clients) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < clients.size(); ++i)
    watch(epoll, clients[i].fd, EPOLLIN, i);
  char operation[8];
  long long total;
  while (std::scanf("%7s %lld", operation, &total) == 2) {
    const bool get = std::strcmp(operation, "get") == 0;
    for (size_t i = 0; i < clients.size(); ++i) {
      // Counters are apart from the values.
      clients[i].request = get ? with_key(3, 2, i) : with_key(4, 3, i + clients.size());
      clients[i].reply_size = get ? 8 + kValueSize : 8;
      if (!get) put_u64(clients[i].request, 1);
    }
    std::printf("%lld\n", static_cast<long long>(run(epoll, clients, total)));
    std::fflush(stdout);
  }
}

int64_t greet_all(size_t count) {
  const std::string hello = greeting();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> fds(count);
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) {
    fds[i] = connect_one(SOCK_NONBLOCK);
    watch(epoll, fds[i], EPOLLOUT, i);
  }
  epoll_event events[kEvents];
  char echo[4];
  for (size_t done = 0; done < count;) {
    const int ready = epoll_wait(epoll, events, kEvents, -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = fds[events[i].data.u64];
      if (events[i].events & EPOLLIN) {
        check(recv(fd, echo, 4, 0) == 4, "greeting");
        epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
        ++done;
      } else {
        send_all(fd, hello);
        epoll_event event = events[i];
        event.events = EPOLLIN;
        epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
      }
    }
  }
  return microseconds_since(start);
}

}  // namespace

int main(int argc, char** argv) {
  check(argc >= 3, "usage");
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  port = std::atoi(argv[1]);
  if (std::strcmp(argv[2], "greet") == 0) {
    std::printf("%lld\n", static_cast<long long>(greet_all(static_cast<size_t>(atoi(argv[3])))));
    return 0;
  }
  size_t connections = 64, idle = 0;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--legacy") == 0) legacy = true;
    if (std::strcmp(argv[i], "--connections") == 0)
      connections = std::strtoul(argv[++i], nullptr, 10);
    if (std::strcmp(argv[i], "--idle") == 0) idle = std::strtoul(argv[++i], nullptr, 10);
  }
  std::vector<Client> clients(connections);
  for (size_t i = 0; i < connections; ++i) {
    clients[i].fd = greeted();
    std::string set = with_key(1, 0, i);
    put_u64(set, kValueSize);
    send_all(clients[i].fd, set + std::string(kValueSize, 'v'));
  }
  for (size_t i = 0; i < idle; ++i)
    greeted();
  std::printf("ready\n");
  std::fflush(stdout);
  obey(clients);
}
