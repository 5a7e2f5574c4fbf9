// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/comm/world.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "nccl/join/member_process.h"

namespace muster::comm {

namespace {

using Members = std::vector<std::unique_ptr<MemberProcess>>;

std::string tcp(int port) {
  return "tcp://127.0.0.1:" + std::to_string(port);
}

MemberProcess::Variables env(int port, int rank, int size, int attempt = 0) {
  return {{"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"TORCHELASTIC_USE_AGENT_STORE", ""},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(attempt)}};
}

// All ranks, in an order that is not theirs.
Members start_all(const std::string& init_method, int size, int timeout_ms = 60'000) {
  Members members(static_cast<size_t>(size));
  for (int rank = size - 1; rank >= 0; --rank)
    members[static_cast<size_t>(rank)] = start_member(init_method, timeout_ms, rank, size);
  return members;
}

void expect_joined(Members& members) {
  for (size_t rank = 0; rank < members.size(); ++rank)
    CHECK(members[rank]->next() ==
          "ok " + std::to_string(rank) + "/" + std::to_string(members.size()));
}

// Everybody meets in the store, leaves and ends.
void use_and_leave(Members& members) {
  for (auto& member : members)
    member->say("add n 1");
  for (auto& member : members)
    CHECK(member->next().starts_with("ok "));
  for (auto& member : members)
    member->say("barrier all 60000");
  for (auto& member : members)
    CHECK(member->next() == "ok");
  CHECK(members.back()->ask("add n 0") == "ok " + std::to_string(members.size()));
  for (auto& member : members)
    member->say("leave 60000");
  for (auto& member : members)
    CHECK(member->next() == "ok");
  for (auto& member : members)
    CHECK(member->end() == 0);
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text << "\nhas no: " << part);
  return found;
}

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin);
}

}  // namespace

TEST_CASE("one, two and five ranks meet by tcp, env and a file, and leave nothing") {
  const ScratchFolder folder;
  for (int size : {1, 2, 5}) {
    CAPTURE(size);
    const std::string file = folder.path("meeting");
    for (const std::string& method : {tcp(free_port()), "file://" + file}) {
      Members members = start_all(method, size);
      expect_joined(members);
      CHECK(std::filesystem::exists(file) == method.starts_with("file"));
      use_and_leave(members);
    }
    CHECK_FALSE(std::filesystem::exists(file));
    const int port = free_port();
    Members members;
    for (int rank = 0; rank < size; ++rank)
      members.push_back(start_member("env://", 60'000, env(port, rank, size)));
    expect_joined(members);
    use_and_leave(members);
  }
}

TEST_CASE("a late rank is waited for") {
  const ScratchFolder folder;
  for (const std::string& method : {tcp(free_port()), "file://" + folder.path("f")}) {
    Members members;
    members.push_back(start_member(method, 60'000, 0, 2));
    CHECK(members[0]->next(std::chrono::milliseconds(300)) == "(silence)");
    members.push_back(start_member(method, 60'000, 1, 2));
    expect_joined(members);
    use_and_leave(members);
  }
}

TEST_CASE("a time without end is one, by tcp and a file") {
  const ScratchFolder folder;
  for (const std::string& method : {tcp(free_port()), "file://" + folder.path("f")}) {
    const auto take_part = [&](int rank) {
      const Duration ever = Duration::max();
      World world =
          World::join({.init_method = method, .rank = rank, .world_size = 2, .timeout = ever})
              .value();
      if (rank == 1) world.set("k", "v").value();
      CHECK(world.get("k", ever).value() == "v");
      world.barrier("b", ever).value();
      Communicator all = world.communicator(Backend::kGloo, {.timeout = ever}).value();
      all.barrier().wait().value();
      all.close().value();
      world.leave(ever).value();
    };
    std::vector<std::thread> ranks;
    for (int rank : {0, 1})
      ranks.emplace_back([&, rank] {
        try {
          take_part(rank);
        } catch (const std::exception& error) {
          FAIL_CHECK(method << ", rank " << rank << ": " << error.what());
        }
      });
    for (std::thread& rank : ranks)
      rank.join();
  }
}

TEST_CASE("ranks that never come are named by everybody, in time") {
  const ScratchFolder folder;
  for (const std::string& method : {tcp(free_port()), "file://" + folder.path("f")}) {
    const auto begin = std::chrono::steady_clock::now();
    Members members;
    for (int rank : {0, 1, 2, 4})
      members.push_back(start_member(method, 2'500, rank, 8));
    for (auto& member : members) {
      const std::string line = member->next();
      CHECK(contains(line, "error timeout [3,5,6,7] joining at "));
      CHECK(contains(line, "ranks 3 and 5-7 of 8 have not arrived after "));
      CHECK(member->end() == 1);
    }
    // A start and the time to say so included.
    CHECK(since(begin) < std::chrono::milliseconds(10'000));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path("f")));
}

TEST_CASE("without rank 0 the others say that it, the store, is missing") {
  auto member = start_member(tcp(free_port()), 700, 1, 2);
  CHECK(contains(member->next(),
                 "error timeout [0] joining: rank 0 of 2, which is the store, has not arrived"));
}

TEST_CASE("two processes of one rank are named, and nobody waits on") {
  const ScratchFolder folder;
  Members members;
  const std::string method = tcp(free_port());
  members.push_back(start_member(method, 60'000, 0, 3));
  members.push_back(start_member(method, 60'000, 1, 3));
  members.push_back(start_member(method, 60'000, 1, 3));
  std::string first_pid = std::to_string(members[1]->pid());
  std::string second_pid = std::to_string(members[2]->pid());
  for (auto& member : members) {
    const std::string line = member->next();
    CHECK(contains(line, "error mismatch [1] "));
    CHECK(contains(line, "rank 1 is there twice: pid "));
    CHECK(contains(line, "pid " + first_pid));
    CHECK(contains(line, "pid " + second_pid));
  }
}

TEST_CASE("world sizes that differ are named by rank") {
  const std::string method = tcp(free_port());
  Members members;
  members.push_back(start_member(method, 60'000, 0, 3));
  members.push_back(start_member(method, 60'000, 2, 4));
  for (auto& member : members) {
    const std::string line = member->next();
    CHECK(contains(line, "error mismatch ["));
    CHECK((contains(line, "the world's size is 3 on rank 0, but 4 on rank 2") ||
           contains(line, "the world's size is 4 on rank 2, but 3 on rank 0")));
  }
}

TEST_CASE("a store that dies is an error at once, not a hang") {
  const std::string method = tcp(free_port());
  Members members = start_all(method, 2);
  expect_joined(members);
  members[1]->say("get never 60000");
  members[0]->kill();
  CHECK(contains(members[1]->next(), "error store_lost [] "));
  CHECK(contains(members[1]->ask("set k v"), "error store_lost"));
  CHECK(contains(members[1]->ask("leave 2000"), "ok"));
}

TEST_CASE("a store that hangs costs no more than the time given") {
  const std::string method = tcp(free_port());
  Members members = start_all(method, 2);
  expect_joined(members);
  CHECK(members[1]->ask("set k v") == "ok");
  members[0]->signal(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(contains(members[1]->ask("get never 300"), "error store_lost"));
  CHECK(since(begin) < std::chrono::milliseconds(2'000));
  members[0]->signal(SIGCONT);
}

TEST_CASE("a get in vain and a barrier that somebody misses time out, and the world goes on") {
  const std::string method = tcp(free_port());
  Members members = start_all(method, 3);
  expect_joined(members);
  CHECK(contains(members[1]->ask("get never 50"), "error timeout [] store: get 'never': "));
  members[0]->say("barrier b 400");
  members[1]->say("barrier b 400");
  for (int rank : {0, 1})
    CHECK(contains(members[static_cast<size_t>(rank)]->next(),
                   "error timeout [2] barrier 'b': rank 2 of 3 has not arrived after "));
  CHECK(members[2]->ask("erase k") == "ok 0");
  CHECK(members[2]->ask("set k v") == "ok");
  CHECK(members[0]->ask("get k 1000") == "ok v");
  CHECK(members[2]->ask("erase k") == "ok 1");
  use_and_leave(members);
}

TEST_CASE("the store's rank stays until all have left, and says who has not") {
  const std::string method = tcp(free_port());
  Members members = start_all(method, 3);
  expect_joined(members);
  members[0]->say("leave 60000");
  CHECK(members[0]->next(std::chrono::milliseconds(300)) == "(silence)");
  CHECK(members[1]->ask("set k v") == "ok");  // still there
  CHECK(members[1]->ask("leave 1000") == "ok");
  CHECK(members[2]->ask("get k 1000") == "ok v");
  CHECK(members[2]->ask("leave 1000") == "ok");
  CHECK(members[0]->next() == "ok");
  CHECK(contains(members[0]->ask("set k v"), "error invalid_argument [] this world was left"));

  members = start_all(tcp(free_port()), 3);
  expect_joined(members);
  CHECK(members[2]->ask("leave 1000") == "ok");
  CHECK(contains(members[0]->ask("leave 300"), "error timeout [1] leaving the store at"));
}

TEST_CASE("ranks that died without leaving do not hold the store's rank") {
  Members members = start_all(tcp(free_port()), 3);
  expect_joined(members);
  CHECK(members[1]->ask("leave 1000") == "ok");
  members[2]->kill();
  CHECK(members[0]->ask("leave 60000") == "ok");
}

TEST_CASE("the last handle leaves by itself") {
  const ScratchFolder folder;
  const std::string file = folder.path("f");
  Members members = start_all("file://" + file, 2);
  expect_joined(members);
  CHECK(members[0]->ask("drop") == "ok");
  CHECK(std::filesystem::exists(file));
  CHECK(members[1]->ask("drop") == "ok");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("the address is loopback where all are there, or the named interface's") {
  const ScratchFolder folder;
  for (const std::string& method : {tcp(free_port()), "file://" + folder.path("f")}) {
    Members members = start_all(method, 2);
    expect_joined(members);
    CHECK(members[1]->ask("address") == "ok 127.0.0.1");
  }
  auto member = start_member("file://" + folder.path("g"), 1'000, 0, 1,
                             {{"GLOO_SOCKET_IFNAME", "nowhere0,lo"}});
  CHECK(member->next() == "ok 0/1");
  CHECK(member->ask("address") == "ok 127.0.0.1");
  member = start_member("file://" + folder.path("h"), 1'000, 0, 1,
                        {{"MUSTER_SOCKET_IFNAME", "nowhere0"}});
  const std::string line = member->next();
  CHECK(contains(line, "error invalid_argument [] joining: MUSTER_SOCKET_IFNAME='nowhere0'"));
  CHECK(contains(line, "there are lo"));
}

TEST_CASE("a port that another program uses is an error of rank 0") {
  const int port = free_port();
  Members members = start_all(tcp(port), 1);
  expect_joined(members);
  auto second = start_member(tcp(port), 1'000, 0, 1);
  CHECK(contains(second->next(), "error system [] store: listen on [::]:" + std::to_string(port) +
                                     ": Address already in use; another program uses this port"));
}

TEST_CASE("each attempt of a job has keys of its own in a store that outlives it") {
  const int port = free_port();
  // The store is somebody else's, as torchrun's agent is.
  auto keeper = start_member(tcp(port), 60'000, 0, 1);
  CHECK(keeper->next() == "ok 0/1");
  for (int attempt : {1, 2}) {
    Members members;
    for (int rank : {0, 1}) {
      MemberProcess::Variables variables = env(port, rank, 2, attempt);
      variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
      members.push_back(start_member("env://", 60'000, variables));
    }
    expect_joined(members);
    CHECK(members[0]->ask("add n 1") == "ok 1");
  }
}

TEST_CASE("before a communicator is made the world is compared, and differences are named") {
  Members members = start_all(tcp(free_port()), 3);
  expect_joined(members);
  for (auto& member : members)
    member->say("comm gloo 60000 alike");
  for (auto& member : members)
    CHECK(member->next() == "ok 3");
  CHECK(members[2]->ask("setenv MUSTER_COMM_CHECK 1") == "ok");
  for (auto& member : members)
    member->say("comm gloo 60000 alike");
  for (auto& member : members)
    CHECK(member->next() ==
          "error mismatch [2] making the communicator 'alike' of 3 ranks: checked mode is 'off' on "
          "ranks 0-1 and 'on' on rank 2");
  CHECK(members[2]->ask("setenv MUSTER_COMM_CHECK 0") == "ok");
  members[0]->say("comm gloo 500 a/b");
  members[2]->say("comm gloo 500 a/b");
  for (int rank : {0, 2})
    CHECK(contains(members[static_cast<size_t>(rank)]->next(),
                   "error timeout [1] making the communicator 'a/b' of 3 ranks: rank 1 of 3 has "
                   "not arrived after "));
  // Who has left one out is not lost for the next.
  for (auto& member : members)
    member->say("comm gloo 60000 alike");
  for (auto& member : members)
    CHECK(member->next() == "ok 3");
}

#ifdef MUSTER_NCCL_DOUBLE
TEST_CASE("ranks with other NCCLs, and two on one GPU, are named before NCCL is asked") {
  const std::string method = tcp(free_port());
  Members members;
  for (int rank = 0; rank < 3; ++rank)
    members.push_back(start_member(
        method, 60'000, rank, 3,
        {{"MUSTER_CUDART_LIBRARY", MUSTER_CUDART_DOUBLE},
         {"MUSTER_NCCL_LIBRARY", rank == 1 ? MUSTER_NCCL_DOUBLE_OLD : MUSTER_NCCL_DOUBLE},
         {"NCCL_PROTO", rank == 2 ? "LL" : ""},
         {"LOCAL_RANK", "0"}}));
  expect_joined(members);
  for (auto& member : members)
    member->say("comm nccl 60000");
  for (auto& member : members) {
    const std::string line = member->next();
    CHECK(contains(line, "error mismatch [0,1,2] making the communicator of 3 ranks: "));
    CHECK(contains(line, " on ranks 0 and 2 and '2.18.3' on rank 1; "));
    CHECK(contains(line, "NCCL_PROTO is not set on ranks 0-1 and 'LL' on rank 2; "));
    CHECK(contains(line, "ranks 0-2 use the same device, "));
  }
}
#endif

}  // namespace muster::comm
