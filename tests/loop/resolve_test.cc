// SPDX-License-Identifier: Apache-2.0
#include "loop/resolve.h"

#include <doctest/doctest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "loop/fd_watch.h"
#include "loop/loop_test.h"
#include "loop/pool.h"
#include "loop/unique_fd.h"
#include "skip.h"

namespace muster {

namespace {

using Answer = std::optional<Result<std::vector<SocketAddress>>>;

struct ResolveTest : LoopTest {
  Owned<Lookup> lookup;

  Answer ask(const std::string& host) {
    Answer answer;
    lookup = resolve(loop, host, [&](Result<std::vector<SocketAddress>> result) {
      lookup.reset();  // allowed inside its own callback
      answer = std::move(result);
    });
    CHECK_FALSE(answer);  // never from inside the call
    REQUIRE(run_until([&] { return answer.has_value(); }));
    return answer;
  }
};

// A network and a hosts and resolver configuration of its own, with a name server on loopback that
// never answers. For a forked child; false if this machine does not allow it.
bool enter_silent_network(UniqueFd& name_server) {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  char path[] = "/tmp/muster-test-resolv-XXXXXX";
  UniqueFd file(mkstemp(path));
  std::ofstream(path) << "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n";
  if (mount(path, "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0) return false;
  unlink(path);
  name_server.reset(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (ioctl(name_server.get(), SIOCSIFFLAGS, &request) != 0) return false;
  auto at = SocketAddress::parse("127.0.0.1", 53);
  return bind(name_server.get(), at->raw(), at->size()) == 0;
}

// 0 if four tasks of others pass by eight look-ups that hang; the rest says what went wrong.
int slow_names_beside_other_work() {
  UniqueFd name_server;
  if (!enter_silent_network(name_server)) return 77;
  // Never destroyed: its destructor would wait for the name server.
  LoopTest& test = *new LoopTest;
  std::string asked;
  auto watch = FdWatch::start(test.loop, name_server.get(), FdWatch::kReadable, [&](int) {
    char packet[512];
    ssize_t n = recv(name_server.get(), packet, sizeof packet, 0);
    if (n > 0) asked.append(packet, static_cast<size_t>(n));
  });
  if (!watch) return 2;
  std::vector<Owned<Lookup>> lookups;
  for (int i = 0; i < 8; ++i)
    lookups.push_back(resolve(test.loop, "slow" + std::to_string(i) + ".test", [](auto) {}));
  if (!test.run_until([&] { return asked.find("slow0") != std::string::npos; })) return 3;
  int finished = 0;
  for (int i = 0; i < 4; ++i)
    run_in_pool(
        test.loop, [] {}, [&] { ++finished; });
  if (!test.run_until([&] { return finished == 4; }, Milliseconds(5'000))) return 4;
  return asked.find("slow1") == std::string::npos ? 0 : 5;
}

}  // namespace

TEST_CASE_FIXTURE(ResolveTest, "literals are answered as they are") {
  for (const char* text : {"127.0.0.1", "10.9.8.7", "::1", "2001:db8::1", "fe80::1%lo"}) {
    CAPTURE(std::string(text));
    Answer answer = ask(text);
    REQUIRE(answer->has_value());
    REQUIRE((*answer)->size() == 1);
    CHECK((**answer)[0].host() == text);
    CHECK_FALSE(loop.has_requests());
  }
}

TEST_CASE_FIXTURE(ResolveTest, "localhost is loopback, each address once") {
  Answer answer = ask("localhost");
  REQUIRE(answer->has_value());
  const std::vector<SocketAddress>& addresses = **answer;
  CHECK_FALSE(addresses.empty());
  for (const SocketAddress& address : addresses) {
    CHECK(address.is_loopback());
    CHECK(std::ranges::count(addresses, address) == 1);
  }
}

TEST_CASE_FIXTURE(ResolveTest, "a name that does not exist is an error that names it") {
  Answer answer = ask("no-such-host.invalid");
  REQUIRE_FALSE(answer->has_value());
  CHECK(answer->error().message.starts_with("resolve no-such-host.invalid: "));
}

TEST_CASE_FIXTURE(ResolveTest, "what can be neither name nor address asks nobody") {
  for (const char* text : {"", "10.0.0.1:29500", "::zz", "fe80::1%nothere"}) {
    CAPTURE(std::string(text));
    Answer answer = ask(text);
    REQUIRE_FALSE(answer->has_value());
    CHECK(answer->error().message.starts_with("resolve '" + std::string(text) + "': no "));
    CHECK_FALSE(loop.has_requests());
  }
}

TEST_CASE_FIXTURE(ResolveTest, "all who ask for one name at once get its answer") {
  int answers = 0;
  std::vector<Owned<Lookup>> lookups;
  for (int i = 0; i < 5; ++i) {
    lookups.push_back(resolve(loop, "localhost", [&](auto result) {
      CHECK(result.has_value());
      ++answers;
    }));
  }
  CHECK(run_until([&] { return answers == 5; }));
}

TEST_CASE_FIXTURE(ResolveTest, "a dropped look-up is silent and the next one goes on") {
  bool told = false;
  Owned<Lookup> running = resolve(loop, "localhost", [&](auto) { told = true; });
  Owned<Lookup> waiting = resolve(loop, "dropped.invalid", [&](auto) { told = true; });
  running.reset();
  waiting.reset();
  CHECK(ask("localhost")->has_value());
  CHECK_FALSE(told);
}

TEST_CASE("look-ups of dead names leave the pool to others") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(30);
    _exit(slow_names_beside_other_work());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    say_skipped("a network namespace of its own is not allowed here: slow name servers");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace muster
