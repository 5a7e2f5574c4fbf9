// SPDX-License-Identifier: Apache-2.0
// How fast the GPUs can talk: an all_reduce of each size over NCCL, timed on the device, in the
// form of nccl-tests' all_reduce_perf. No MPI is needed.
//
//   muster --nproc-per-node gpu build/release/examples/cuda/ping_cuda --min 8 --max 1073741824
//
// algbw is bytes / time. busbw is what each link must have carried if the algorithm is the best
// there can be, algbw * 2 (n - 1) / n: it can be compared with the hardware's speed, whatever n is.
// Each size is checked for its result, outside the time that is taken.
#include <muster/comm.h>
#include <parallel_for.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "mlp/options.h"

namespace mc = muster::comm;

namespace {

// One number for all ranks.
double combined(mc::Communicator& all, cudaStream_t stream, double value, mc::ReduceOp op) {
  const DeviceArray<double> number(std::span<const double>(&value, 1));
  all.all_reduce(number.buffer(stream), op).wait().value();
  return number.values(stream)[0];
}

// How many numbers, on all ranks together, are not what they should be.
double count_wrong(mc::Communicator& all, const DeviceArray<float>& numbers, cudaStream_t stream) {
  const auto ranks = static_cast<float>(all.size());
  const float expected = ranks * (ranks + 1) / 2;
  const std::vector<float> values = numbers.values(stream);
  const auto wrong = static_cast<double>(values.size()) -
                     static_cast<double>(std::count(values.begin(), values.end(), expected));
  return combined(all, stream, wrong, mc::ReduceOp::kSum);
}

// Microseconds of one all_reduce: the slowest rank's mean over the iterations, which follow each
// other on the stream.
double time_all_reduce(mc::Communicator& all, const DeviceArray<float>& numbers,
                       const DeviceStream& stream, const DeviceStream& start, long iterations) {
  all.barrier().wait().value();
  start.wait_for(stream);
  start.mark();
  stream.wait_for(start);
  mc::Work last;
  for (long i = 0; i < iterations; ++i)
    static_cast<void>(last = all.all_reduce(numbers.buffer(stream)));
  stream.mark();
  last.wait().value();
  const double mean = 1000.0 * stream.milliseconds_since(start) / static_cast<double>(iterations);
  return combined(all, stream, mean, mc::ReduceOp::kMax);
}

void print_head(const mc::Communicator& all, long iterations) {
  std::printf("# all_reduce, %d ranks, %s, %ld iterations\n", all.size(), to_string(all.backend()),
              iterations);
  std::printf("#%11s %12s %8s %6s %10s %12s %12s %8s\n", "size (B)", "count", "type", "redop",
              "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong");
}

void print_line(size_t count, double time, double algorithm, double bus, double wrong) {
  std::printf("%12zu %12zu %8s %6s %10.2f %12.3f %12.3f %8.0f\n", count * sizeof(float), count,
              to_string(mc::DataType::kFloat32), to_string(mc::ReduceOp::kSum), time, algorithm,
              bus, wrong);
  std::fflush(stdout);
}

int ping(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Result<mc::Communicator> made = world.communicator(mc::Backend::kNccl);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  mc::Communicator& all = *made;
  use_device_of(world.local_rank());
  const auto smallest = static_cast<size_t>(std::max(4L, options.number("min")));
  const auto largest = static_cast<size_t>(options.number("max"));
  const long iterations = std::max(1L, options.number("iterations"));
  const double ranks = all.size();
  const DeviceStream stream;
  const DeviceStream start;
  if (all.rank() == 0) print_head(all, iterations);
  double sum = 0;
  double wrong_in_all = 0;
  int64_t lines = 0;
  for (size_t bytes = smallest; bytes <= largest; bytes *= 2) {
    const DeviceArray<float> numbers(bytes / sizeof(float));
    float* values = numbers.data();
    const auto own = static_cast<float>(all.rank() + 1);
    parallel_for(stream, numbers.size(), [=] __device__(size_t i) { values[i] = own; });
    // Also warms up: the first use of a connection is slower.
    all.all_reduce(numbers.buffer(stream)).wait().value();
    const double wrong = count_wrong(all, numbers, stream);
    const double time = time_all_reduce(all, numbers, stream, start, iterations);
    const double algorithm = static_cast<double>(numbers.size() * sizeof(float)) / time / 1000;
    const double bus = algorithm * 2 * (ranks - 1) / ranks;
    sum += bus;
    wrong_in_all += wrong;
    mc::report_progress({++lines, {}, {}});
    mc::report_values({{"busbw_gb_s", bus}});
    if (all.rank() == 0) print_line(numbers.size(), time, algorithm, bus, wrong);
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
    return ping({argc, argv, {{"min", "8"}, {"max", "268435456"}, {"iterations", "20"}}});
  });
}
