// SPDX-License-Identifier: Apache-2.0
// A small trainer: a line through points, fitted by gradient descent, the points shared among the
// ranks, with a checkpoint every five steps.
//
//   trainer CHECKPOINT [STEP RANK]
//
// With STEP and RANK that rank does not come to the first attempt's step: it says so and sleeps.
// Built with TRAINER_NCCL its gradients are averaged in device memory.
#include <muster/comm.h>
#include <muster/train.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>
#ifdef TRAINER_NCCL
#include <cuda_runtime_api.h>
#endif

namespace mc = muster::comm;
namespace mt = muster::train;

namespace {

constexpr int64_t kSteps = 40;
constexpr int64_t kPoints = 240;
constexpr float kRate = 0.2F;

// y = 3 x - 1, and something that looks like noise and is the same everywhere.
struct Point {
  float x;
  float y;
};
Point point(int64_t i) {
  const float x = static_cast<float>(i) / kPoints;
  return {x, 3 * x - 1 + 0.05F * std::sin(static_cast<float>(i * i))};
}

#ifdef TRAINER_NCCL
constexpr mc::Backend kBackend = mc::Backend::kNccl;

class Averager {
 public:
  Averager(mc::Communicator& all, std::span<float> parameters) : all_(all) {
    cudaMalloc(&device_, parameters.size_bytes());
  }
  ~Averager() { cudaFree(device_); }

  void average(std::span<float> gradient) {
    const auto buffer =
        mc::Buffer::device(device_, gradient.size(), mc::DataType::kFloat32, nullptr);
    cudaMemcpy(device_, gradient.data(), gradient.size_bytes(), cudaMemcpyHostToDevice);
    all_.all_reduce(buffer, mc::ReduceOp::kAverage).wait().value();
    cudaMemcpy(gradient.data(), device_, gradient.size_bytes(), cudaMemcpyDeviceToHost);
  }

 private:
  mc::Communicator& all_;
  void* device_ = nullptr;
};
#else
constexpr mc::Backend kBackend = mc::Backend::kGloo;

class Averager {
 public:
  Averager(mc::Communicator& all, std::span<float> parameters)
      : ddp_(mt::DistributedDataParallel::make(all, {{"line", {2}, parameters}}).value()) {}

  void average(std::span<float> gradient) {
    ddp_.zero_gradients();
    std::copy(gradient.begin(), gradient.end(), ddp_.gradient<float>(0).begin());
    ddp_.ready(0);
    ddp_.finish().value();
    std::copy_n(ddp_.gradient<float>(0).begin(), gradient.size(), gradient.begin());
  }

 private:
  mt::DistributedDataParallel ddp_;
};
#endif

// The mean squared error of this rank's points, and its gradient.
float error(std::span<const float> line, std::span<const int64_t> points,
            std::span<float> gradient) {
  float sum = 0;
  gradient[0] = gradient[1] = 0;
  for (const int64_t i : points) {
    const auto [x, y] = point(i);
    const float off = line[0] * x + line[1] - y;
    sum += off * off;
    gradient[0] += 2 * off * x / static_cast<float>(points.size());
    gradient[1] += 2 * off / static_cast<float>(points.size());
  }
  return sum / static_cast<float>(points.size());
}

[[noreturn]] void sleep_instead(int64_t step) {
  std::printf("not coming to step %ld\n", static_cast<long>(step));
  std::fflush(stdout);
  while (true)
    pause();
}

int train(const std::string& checkpoint, int64_t sleep_step, int sleep_rank) {
  mc::World world = mc::World::join().value();
  mc::Communicator control = world.communicator(mc::Backend::kGloo).value();
  mc::Communicator all = world.communicator(kBackend, {.name = "training"}).value();
  std::array<float, 2> line{};
  std::array<float, 2> gradient{};
  const std::vector<mt::NamedTensor> state = {{"line", {2}, line}};
  Averager averager(all, line);
  const mt::DistributedSampler sampler(kPoints, all, {.shuffle = false});
  const std::vector<int64_t> points = sampler.indices();

  int64_t step = 0;
  if (const auto found = mt::load_checkpoint(control, checkpoint, state).value()) {
    step = std::stol(found->at("step"));
    std::printf("resumed at step %ld\n", static_cast<long>(step));
  }
  for (; step < kSteps; ++step) {
    if (world.attempt() == 0 && step == sleep_step && all.rank() == sleep_rank) {
      sleep_instead(step);
    }
    const float loss = error(line, points, gradient);
    averager.average(gradient);
    for (size_t i = 0; i < line.size(); ++i)
      line[i] -= kRate * gradient[i];
    mc::report_progress({step + 1, kSteps, loss});
    if ((step + 1) % 5 == 0) {
      mt::save_checkpoint(control, checkpoint, state, {{"step", std::to_string(step + 1)}}).value();
    }
  }
  std::printf("y = %a x + %a\n", static_cast<double>(line[0]), static_cast<double>(line[1]));
  all.close().value();
  control.close().value();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mc::record([&] {
    const bool sleeps = argc > 3;
    return train(argv[1], sleeps ? std::atol(argv[2]) : -1, sleeps ? std::atoi(argv[3]) : -1);
  });
}
