// SPDX-License-Identifier: Apache-2.0
// What a communicator of the worker library costs over the same calls of Gloo itself:
//
//   comm_bench [RANKS [SECONDS_PER_CELL]]
//
// Each rank is a process with both: a muster communicator and a bare Gloo context, each with its
// own connections. They take turns call by call, so that what else the machine does hits both. A
// line for each operation and size: operation, bytes, the medians of the microseconds of a call,
// bare and wrapped, on rank 0, and the median of their differences, turn by turn.

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
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
#include <functional>
#include <string>
#include <vector>

namespace {

namespace mc = muster::comm;
using Clock = std::chrono::steady_clock;

struct Plan {
  int ranks = 2;
  double seconds = 1;
  std::string folder;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::shared_ptr<gloo::Context> bare_context(const Plan& plan, int rank) {
  gloo::transport::tcp::attr attr("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(attr);
  gloo::rendezvous::FileStore store(plan.folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, plan.ranks);
  context->connectFullMesh(store, device);
  return context;
}

// One operation of one size, by both.
struct Cell {
  std::string name;
  size_t bytes = 0;
  std::function<void()> bare;
  std::function<void()> wrapped;
};

double one_call(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Calls of both by turns, each going first as often as the other.
void measure(const Plan& plan, int rank, const Cell& cell, mc::Communicator& all) {
  std::vector<double> warm;
  for (int i = 0; i < 5; ++i) {
    warm.push_back(one_call(cell.bare));
    one_call(cell.wrapped);
  }
  // Rank 0 says how many calls fit; the same number for all.
  std::vector<int64_t> calls{std::clamp<int64_t>(
      static_cast<int64_t>(plan.seconds * 1e6 / (2 * std::max(median(warm), 1.0))), 15, 100'000)};
  all.broadcast(calls, 0).wait().value();

  std::vector<double> bare, wrapped, difference;
  for (int64_t i = 0; i < calls[0]; ++i) {
    if (i % 2 == 0) bare.push_back(one_call(cell.bare));
    wrapped.push_back(one_call(cell.wrapped));
    if (i % 2 == 1) bare.push_back(one_call(cell.bare));
    difference.push_back(wrapped.back() - bare.back());
  }
  if (rank != 0) return;
  std::printf("%s %zu %.2f %.2f %.2f\n", cell.name.c_str(), cell.bytes, median(bare),
              median(wrapped), median(difference));
  std::fflush(stdout);
}

void run_rank(const Plan& plan, int rank) {
  mc::World world = mc::World::join({.init_method = "file://" + plan.folder + "/meeting",
                                     .rank = rank,
                                     .world_size = plan.ranks})
                        .value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  const auto context = bare_context(plan, rank);
  const auto add = [](void* out, const void* a, const void* b, size_t count) {
    gloo::sum<float>(out, a, b, count);
  };

  for (size_t bytes = 4; bytes <= size_t{64} << 20; bytes *= 16) {
    std::vector<float> numbers(bytes / sizeof(float));
    measure(plan, rank,
            {"all_reduce", bytes,
             [&] {
               gloo::AllreduceOptions options(context);
               options.setOutput(numbers.data(), numbers.size());
               options.setReduceFunction(add);
               gloo::allreduce(options);
             },
             [&] { all.all_reduce(numbers).wait().value(); }},
            all);
    measure(plan, rank,
            {"broadcast", bytes,
             [&] {
               gloo::BroadcastOptions options(context);
               options.setOutput(numbers.data(), numbers.size());
               options.setRoot(0);
               gloo::broadcast(options);
             },
             [&] { all.broadcast(numbers, 0).wait().value(); }},
            all);
  }
  measure(plan, rank,
          {"barrier", 0,
           [&] {
             gloo::BarrierOptions options(context);
             gloo::barrier(options);
           },
           [&] { all.barrier().wait().value(); }},
          all);
  all.close().value();
  world.leave().value();
}

int be_rank(const Plan& plan, int rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    run_rank(plan, rank);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  if (argc > 1) plan.ranks = std::atoi(argv[1]);
  if (argc > 2) plan.seconds = std::atof(argv[2]);
  plan.folder = (std::filesystem::temp_directory_path() / "comm_bench-XXXXXX").string();
  if (plan.ranks < 2 || mkdtemp(plan.folder.data()) == nullptr) return 2;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (fork() == 0) std::_Exit(be_rank(plan, rank));
  }
  int worst = 0;
  int status = 0;
  while (wait(&status) > 0)
    worst = status != 0 ? 1 : worst;
  std::filesystem::remove_all(plan.folder);
  return worst;
}
