// SPDX-License-Identifier: Apache-2.0
// How fast the ranks can talk: an all_reduce of each size, timed, in the form of nccl-tests'
// all_reduce_perf. No MPI is needed.
//
//   muster --nproc-per-node 4 build/release/examples/ping --min 8 --max 16777216
//
// algbw is bytes / time. busbw is what each link must have carried if the algorithm is the best
// there can be, algbw * 2 (n - 1) / n: it can be compared with the hardware's speed, whatever n is.
// Each size is checked for its result, outside the time that is taken.
#include <muster/comm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "mlp/options.h"

namespace mc = muster::comm;

namespace {

using Clock = std::chrono::steady_clock;

// How many numbers, on all ranks together, are not what they should be.
int64_t count_wrong(mc::Communicator& all, const std::vector<float>& numbers, float expected) {
  std::vector<int64_t> wrong = {static_cast<int64_t>(numbers.size()) -
                                std::count(numbers.begin(), numbers.end(), expected)};
  all.all_reduce(wrong).wait().value();
  return wrong[0];
}

// Microseconds of one all_reduce: the slowest rank's mean over the iterations.
double time_all_reduce(mc::Communicator& all, std::vector<float>& numbers, long iterations) {
  all.barrier().wait().value();
  const Clock::time_point start = Clock::now();
  for (long i = 0; i < iterations; ++i) {
    all.all_reduce(numbers).wait().value();
  }
  const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
  std::vector<double> slowest = {taken.count() / static_cast<double>(iterations)};
  all.all_reduce(slowest, mc::ReduceOp::kMax).wait().value();
  return slowest[0];
}

int ping(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  const auto smallest = static_cast<size_t>(std::max(4L, options.number("min")));
  const auto largest = static_cast<size_t>(options.number("max"));
  const long iterations = std::max(1L, options.number("iterations"));
  const double ranks = all.size();
  if (all.rank() == 0) {
    std::printf("# all_reduce, %d ranks, %s, %ld iterations\n", all.size(),
                to_string(all.backend()), iterations);
    std::printf("#%11s %12s %8s %6s %10s %12s %12s %8s\n", "size (B)", "count", "type", "redop",
                "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong");
  }
  double sum = 0;
  int64_t lines = 0;
  int64_t wrong_in_all = 0;
  for (size_t bytes = smallest; bytes <= largest; bytes *= 2) {
    const size_t count = bytes / sizeof(float);
    std::vector<float> numbers(count, static_cast<float>(all.rank() + 1));
    // Also warms up: the first use of a connection is slower.
    all.all_reduce(numbers).wait().value();
    const auto expected = static_cast<float>(ranks * (ranks + 1) / 2);
    const int64_t wrong = count_wrong(all, numbers, expected);
    const double time = time_all_reduce(all, numbers, iterations);
    const double algorithm = static_cast<double>(count * sizeof(float)) / time / 1000;
    const double bus = algorithm * 2 * (ranks - 1) / ranks;
    sum += bus;
    wrong_in_all += wrong;
    mc::report_progress({++lines, {}, {}});
    mc::report_values({{"busbw_gb_s", bus}});
    if (all.rank() != 0) continue;
    std::printf("%12zu %12zu %8s %6s %10.2f %12.3f %12.3f %8ld\n", count * sizeof(float), count,
                to_string(mc::DataType::kFloat32), to_string(mc::ReduceOp::kSum), time, algorithm,
                bus, static_cast<long>(wrong));
    std::fflush(stdout);
  }
  if (all.rank() == 0 && lines > 0) {
    std::printf("# average bus bandwidth: %.3f GB/s\n", sum / static_cast<double>(lines));
  }
  all.close().value();
  return wrong_in_all == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return mc::record([argc, argv] {
    return ping({argc, argv, {{"min", "8"}, {"max", "16777216"}, {"iterations", "20"}}});
  });
}
