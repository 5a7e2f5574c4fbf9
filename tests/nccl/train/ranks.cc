// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/ranks.h"

#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "nccl/train/temporary_folder.h"

namespace muster::train_test {

namespace {

std::string run_rank(int rank, int ranks, const std::string& meeting, const RankBody& body,
                     const comm::CommunicatorOptions& options) {
  try {
    comm::JoinOptions join;
    join.init_method = "file://" + meeting;
    join.rank = rank;
    join.world_size = ranks;
    join.timeout = std::chrono::seconds(30);
    comm::World world = comm::World::join(join).value();
    comm::Communicator all = world.communicator(comm::Backend::kGloo, options).value();
    body(world, all);
    // One that is broken on purpose says so again; what counts is that it ends.
    static_cast<void>(all.close().has_value());
    return {};
  } catch (const std::exception& error) {
    return "rank " + std::to_string(rank) + ": " + error.what();
  } catch (...) {  // doctest's own, from a REQUIRE that has said why
    return "rank " + std::to_string(rank) + ": a requirement failed";
  }
}

}  // namespace

void run_ranks(int ranks, const RankBody& body, comm::CommunicatorOptions options) {
  const TemporaryFolder folder;
  std::vector<std::string> failures(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      failures[static_cast<size_t>(rank)] =
          run_rank(rank, ranks, folder.path("meeting"), body, options);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& failure : failures)
    CHECK(failure == "");
}

}  // namespace muster::train_test
