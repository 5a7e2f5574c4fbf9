// SPDX-License-Identifier: Apache-2.0
//
// Simulated nodes for bench/rendezvous.py, all in one process and one loop.
//
//   agents PORT RUN_ID NODES MAX_RESTARTS
//
// joins a coordinator on this machine whose job has NODES + 1 nodes (--nnodes) and MAX_RESTARTS
// restarts; the token is taken from MUSTER_TOKEN. Obeys a command a line and answers each with a
// line of JSON:
//
//   form          all connect at the same moment, until the last has its ranks
//   fail          one reports that its worker failed, until the last has its new ranks
//   rest SECONDS MS  nothing but heartbeats, and samples of eight workers every so many
//                 milliseconds (0: none)
//   stop          waits for a stop from elsewhere, until the last has been told the job's end
//
// At the end of its input it ends.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "loop/fd_limit.h"
#include "loop/fd_watch.h"
#include "rendezvous/crowd.h"

namespace muster {
namespace {

constexpr Milliseconds kLongestRound{60'000};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "agents: %s\n", why.c_str());
  std::exit(1);
}

void print_times(const char* name, std::vector<int64_t> us) {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  auto at = [&](size_t percent) {
    return static_cast<double>(us[std::min(us.size() - 1, us.size() * percent / 100)]) / 1000;
  };
  std::printf(", \"%s\": {\"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f, \"n\": %zu}", name, at(50),
              at(99), at(100), us.size());
}

void answer(const Crowd::Round& round) {
  const Crowd::Traffic& traffic = round.traffic;
  std::printf("{\"ms\": %.3f, \"unanswered\": %lld", static_cast<double>(round.us) / 1000,
              static_cast<long long>(round.reconnects));
  std::printf(", \"up\": {\"messages\": %.2f, \"bytes\": %.0f}", traffic.messages_up,
              traffic.bytes_up);
  std::printf(", \"down\": {\"messages\": %.2f, \"bytes\": %.0f}", traffic.messages_down,
              traffic.bytes_down);
  print_times("stops", round.stops_us);
  print_times("heartbeats", round.round_trips_us);
  std::printf("}\n");
  std::fflush(stdout);
}

class Commands {
 public:
  Commands(Loop& loop, Crowd& crowd) : loop_(loop), crowd_(crowd) {
    auto input = FdWatch::start(loop, STDIN_FILENO, FdWatch::kReadable, [this](int) { read(); });
    if (!input) die(input.error().message);
    input_ = std::move(*input);
  }

 private:
  void read() {
    char buffer[256];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) return loop_.stop();
    line_.append(buffer, static_cast<size_t>(got));
    const size_t end = line_.find('\n');
    if (end == std::string::npos) return;
    const std::string command = line_.substr(0, end);
    line_.erase(0, end + 1);
    obey(command);
  }

  void obey(const std::string& command) {
    auto on_done = [this](const Crowd::Round& round) {
      timer_.reset();
      answer(round);
    };
    double seconds = 0;
    int sample_ms = 0;
    if (std::sscanf(command.c_str(), "rest %lf %d", &seconds, &sample_ms) == 2) {
      crowd_.rest(Milliseconds(sample_ms));
      const auto time = std::chrono::duration<double>(seconds);
      timer_ = Timer::start(loop_, std::chrono::duration_cast<Milliseconds>(time), [this] {
        answer(crowd_.noted());
        crowd_.rest(Milliseconds(0));
      });
      return;
    }
    timer_ = Timer::start(loop_, kLongestRound, [this, command] {
      die(command + " takes too long: " + crowd_.progress());
    });
    if (command == "form") {
      crowd_.form(on_done);
    } else if (command == "fail") {
      crowd_.fail(on_done);
    } else if (command == "stop") {
      crowd_.stop(on_done);
    } else {
      die("unknown command: " + command);
    }
  }

  Loop& loop_;
  Crowd& crowd_;
  Owned<FdWatch> input_;
  Owned<Timer> timer_;
  std::string line_;
};

int run(char** argv) {
  raise_fd_limit();
  auto address = SocketAddress::parse("127.0.0.1", std::atoi(argv[1]));
  if (!address) die(address.error().message);
  const char* token = std::getenv("MUSTER_TOKEN");
  Loop loop;
  Crowd crowd(loop, {*address, argv[2], token ? token : "", std::atoi(argv[3]), std::atoi(argv[4])},
              die);
  Commands commands(loop, crowd);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 5) muster::die("usage: agents PORT RUN_ID NODES MAX_RESTARTS");
  return muster::run(argv);
}
