// SPDX-License-Identifier: Apache-2.0
// Checks the results of every operation against a reference:
//
//   sweep gloo|nccl RANKS [large]
//
// starts that many ranks as processes of its own, which go through all operations on the world, on
// a part of it, on its ranks in reverse and on each alone. Prints one line; 0 if all was right.

#include <muster/comm.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/memory.h"
#include "nccl/sweep/sweep.h"

namespace {

using namespace muster::comm;

constexpr std::chrono::seconds kTimeout{60};

struct Plan {
  Backend backend = Backend::kGloo;
  int ranks = 1;
  bool large = false;
  std::string meeting;  // a file
};

void sweep_group(Communicator& parent, const std::vector<int>& ranks, const std::string& shape,
                 test::SweepTally& tally) {
  if (std::find(ranks.begin(), ranks.end(), parent.rank()) == ranks.end()) return;
  Communicator group = parent.new_group(ranks, {.timeout = kTimeout, .name = shape}).value();
  test::sweep(group, {.shape = shape}, tally);
  group.close().value();
}

int run_rank(const Plan& plan, int rank) {
  const auto start = std::chrono::steady_clock::now();
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);  // each its own device
  World world = World::join({.init_method = "file://" + plan.meeting,
                             .rank = rank,
                             .world_size = plan.ranks,
                             .timeout = kTimeout})
                    .value();
  test::use_device(plan.backend, rank);
  Communicator all = world.communicator(plan.backend, {.timeout = kTimeout}).value();

  test::SweepTally tally;
  test::sweep(all, {.shape = "world", .background = true, .large = plan.large}, tally);
  std::vector<int> ranks(static_cast<size_t>(plan.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (plan.ranks > 2) sweep_group(all, {ranks.begin() + 1, ranks.end()}, "part", tally);
  if (plan.ranks > 1) {
    sweep_group(all, {ranks.rbegin(), ranks.rend()}, "reversed", tally);
    sweep_group(all, {rank}, "single " + std::to_string(rank), tally);
  }
  all.barrier().wait().value();
  all.close().value();
  world.leave().value();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (rank == 0 || tally.wrong > 0) {
    std::printf("%s, %d ranks: rank %d did %lld operations in %.1f s, %lld wrong\n",
                to_string(plan.backend), plan.ranks, rank, static_cast<long long>(tally.operations),
                seconds, static_cast<long long>(tally.wrong));
  }
  return tally.wrong == 0 ? 0 : 1;
}

int be_rank(const Plan& plan, int rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    return run_rank(plan, rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view backend = argc > 1 ? argv[1] : "";
  Plan plan;
  plan.backend = backend == "nccl" ? Backend::kNccl : Backend::kGloo;
  plan.ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  plan.large = argc > 3 && std::string_view(argv[3]) == "large";
  if ((backend != "gloo" && backend != "nccl") || plan.ranks < 1) {
    std::fprintf(stderr, "usage: sweep gloo|nccl RANKS [large]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "sweep-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  plan.meeting = folder + "/meeting";

  std::vector<pid_t> children;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) std::exit(be_rank(plan, rank));
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) worst = 1;
  }
  unlink(plan.meeting.c_str());
  rmdir(folder.c_str());
  return worst;
}
