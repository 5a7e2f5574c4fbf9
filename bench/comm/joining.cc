// SPDX-License-Identifier: Apache-2.0
// How long ranks take from nothing to a communicator: processes that are there already are told to
// go all at once, join at tcp://127.0.0.1 (rank 0 is the store) or at a file, and make a
// communicator on Gloo, which connects each with each. Printed are the milliseconds from the word
// to the last one that has joined, and to the last one that has its communicator.
//
//   joining_bench RANKS tcp|file
#include <muster/comm.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace muster::comm;
using Clock = std::chrono::steady_clock;

constexpr int kMaxRanks = 1024;

struct Stamp {
  int64_t joined_ns;
  int64_t ready_ns;
};

int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

std::string meeting(const std::string& kind) {
  if (kind == "file") return "file:///tmp/muster-joining-" + std::to_string(getpid());
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, raw, size) != 0 || getsockname(fd, raw, &size) != 0) std::perror("bind");
  close(fd);
  return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// One rank, from the word on.
int run_rank(const std::string& method, int rank, int ranks, int word, Stamp& stamp) {
  pollfd poller{word, POLLIN, 0};
  poll(&poller, 1, -1);
  JoinOptions options;
  options.init_method = method;
  options.rank = rank;
  options.world_size = ranks;
  options.timeout = std::chrono::seconds(60);
  Result<World> world = World::join(options);
  if (!world) return std::fprintf(stderr, "%s\n", world.error().message.c_str()), 1;
  stamp.joined_ns = now_ns();
  CommunicatorOptions making;
  making.timeout = std::chrono::seconds(60);
  Result<Communicator> communicator = world->communicator(Backend::kGloo, making);
  if (!communicator) return std::fprintf(stderr, "%s\n", communicator.error().message.c_str()), 1;
  stamp.ready_ns = now_ns();
  const Result<void> met = communicator->barrier().wait();
  if (!met || !communicator->close() || !world->leave()) return 1;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > kMaxRanks) {
    std::fprintf(stderr, "usage: joining_bench RANKS tcp|file\n");
    return 2;
  }
  const std::string method = meeting(argv[2]);
  void* shared = mmap(nullptr, sizeof(Stamp) * kMaxRanks, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int word[2];
  if (shared == MAP_FAILED || pipe(word) != 0) return 1;
  auto* stamps = static_cast<Stamp*>(shared);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) {
      close(word[1]);
      _exit(run_rank(method, rank, ranks, word[0], stamps[rank]));
    }
  }
  usleep(200'000);  // they sleep in poll by then
  const int64_t begin = now_ns();
  close(word[1]);
  bool good = true;
  for (int left = ranks; left > 0; --left) {
    int status = 0;
    wait(&status);
    good = good && status == 0;
  }
  int64_t joined = 0, ready = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    joined = std::max(joined, stamps[rank].joined_ns - begin);
    ready = std::max(ready, stamps[rank].ready_ns - begin);
  }
  if (!good) return 1;
  std::printf("%.1f %.1f\n", static_cast<double>(joined) / 1e6, static_cast<double>(ready) / 1e6);
  return 0;
}
