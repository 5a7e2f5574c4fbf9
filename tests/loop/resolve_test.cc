// SPDX-License-Identifier: Apache-2.0
#include "loop/resolve.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "loop/fd_watch.h"
#include "loop/loop_test.h"
#include "loop/own_machine.h"
#include "loop/pool.h"

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

// Four tasks of others pass by eight look-ups that hang, at a name server that never answers.
bool slow_names_beside_other_work(OwnMachine&) {
  UniqueFd name_server(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto at = SocketAddress::parse("127.0.0.1", 53);
  NEED(bind(name_server.get(), at->raw(), at->size()) == 0);
  // Never destroyed: its destructor would wait for the name server.
  LoopTest& test = *new LoopTest;
  std::string asked;
  auto watch = FdWatch::start(test.loop, name_server.get(), FdWatch::kReadable, [&](int) {
    char packet[512];
    ssize_t n = recv(name_server.get(), packet, sizeof packet, 0);
    if (n > 0) asked.append(packet, static_cast<size_t>(n));
  });
  NEED(watch.has_value());
  std::vector<Owned<Lookup>> lookups;
  for (int i = 0; i < 8; ++i)
    lookups.push_back(resolve(test.loop, "slow" + std::to_string(i) + ".test", [](auto) {}));
  NEED(test.run_until([&] { return asked.find("slow0") != std::string::npos; }));
  int finished = 0;
  for (int i = 0; i < 4; ++i)
    run_in_pool(
        test.loop, [] {}, [&] { ++finished; });
  NEED(test.run_until([&] { return finished == 4; }, Milliseconds(5'000)));
  NEED(asked.find("slow1") == std::string::npos);
  return true;
}

// The hosts of the answer, in order, or its error.
std::string ask_for(const std::string& host) {
  LoopTest test;
  std::string hosts;
  auto lookup = resolve(test.loop, host, [&](Result<std::vector<SocketAddress>> result) {
    if (!result) hosts = result.error().message;
    if (!result) return;
    for (const SocketAddress& address : *result)
      hosts += address.host() + " ";
  });
  test.run_until([&] { return !hosts.empty(); });
  return hosts;
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
  OwnMachine::run(slow_names_beside_other_work);
}

TEST_CASE("every address of a name is told once") {
  OwnMachine::run([](OwnMachine& machine) {
    machine.set_hosts("10.0.0.9 twice\n10.0.0.9 twice\n::ffff:10.0.0.9 twice\n");
    NEED(ask_for("twice") == "10.0.0.9 ");
    machine.set_hosts("2001:db8::9 other\n10.0.0.9 other\n");
    const std::string both = ask_for("other");
    NEED(both == "10.0.0.9 2001:db8::9 " || both == "2001:db8::9 10.0.0.9 ");
    return true;
  });
}

TEST_CASE("without IPv6 its addresses are left out, unless there are no others") {
  OwnMachine::run([](OwnMachine& machine) {
    NEED(machine.disable_ipv6());
    machine.set_hosts("::1 here\n127.0.0.1 here\n2001:db8::9 far\n10.0.0.9 far\n::1 six\n");
    NEED(ask_for("here") == "127.0.0.1 ");
    NEED(ask_for("far") == "10.0.0.9 ");
    NEED(ask_for("six") == "::1 ");
    return true;
  });
}

TEST_CASE("a name server that is not there is said") {
  OwnMachine::run([](OwnMachine&) {
    NEED(ask_for("node-a") == "resolve node-a: no answer from the name server");
    return true;
  });
}

}  // namespace muster
