// SPDX-License-Identifier: Apache-2.0
// One rank of one cell of the drill:   drill gloo|nccl 'abort in barrier'
// or the list of all:                  drill --list
// The store is named by the environment, as a launcher does.
#include <dirent.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "nccl/drill/drill.h"

namespace {

using namespace muster::comm;
using namespace muster::comm::test;

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const auto& part : {abort_cells(), destroy_cells(), init_cells(), peer_cells(),
                           group_cells(), mismatch_cells(), timeout_cells(), store_cells()}) {
    cells.insert(cells.end(), part.begin(), part.end());
  }
  return cells;
}

int list() {
  const char* ends[] = {"exits", "killed", "stopped"};
  for (const Cell& cell : all_cells()) {
    std::printf("%s\t%d\t%s\t%s\n", cell.name, cell.ranks, ends[static_cast<int>(cell.end_of_last)],
                cell.store);
  }
  return 0;
}

int entries(const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return -1;
  int count = 0;
  while (readdir(dir) != nullptr)
    ++count;
  closedir(dir);
  return count;
}

// What a process holds: descriptors and threads.
struct Holdings {
  int descriptors = entries("/proc/self/fd");
  int threads = entries("/proc/self/task");
};

// A thread that was joined may be in the list of tasks for another moment.
bool back_to(const Holdings& before) {
  for (int i = 0; i < 200; ++i) {
    const Holdings now;
    if (now.descriptors <= before.descriptors && now.threads <= before.threads) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  const Holdings now;
  std::printf("left: %d descriptors (%d before), %d threads (%d before)\n", now.descriptors,
              before.descriptors, now.threads, before.threads);
  return false;
}

int run(const Cell& cell, Backend backend) {
  const Holdings before;
  bool good = false;
  {
    World world = World::join({.timeout = kLong}).value();
    use_device(backend, world.local_rank());
    Drill drill(world, backend);
    cell.body(drill);
    good = drill.good();
    (void)world.leave(milliseconds(100));  // the store may be gone, the others too
  }
  // NCCL and CUDA keep threads and descriptors of their own once they have been used.
  if (backend == Backend::kGloo && !back_to(before)) good = false;
  std::printf("the process lives\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return list();
  if (argc == 3) {
    const Backend backend = std::strcmp(argv[1], "nccl") == 0 ? Backend::kNccl : Backend::kGloo;
    for (const Cell& cell : all_cells()) {
      if (std::strcmp(argv[2], cell.name) != 0) continue;
      try {
        return run(cell, backend);
      } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        return 1;
      }
    }
  }
  std::fprintf(stderr, "usage: %s --list | gloo|nccl CELL\n", argv[0]);
  return 2;
}
