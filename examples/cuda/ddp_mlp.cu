// SPDX-License-Identifier: Apache-2.0
// examples/ddp_mlp.cc on GPUs: the same network on the same digits, its gradients averaged by NCCL
// on a stream of its own while the backward pass is still making others.
//
//   muster --nproc-per-node gpu build/release/examples/cuda/ddp_mlp_cuda
//
// The batch is the whole job's, so that any number of GPUs trains the same network to rounding.
#include <muster/comm.h>
#include <muster/train.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/layers.h"
#include "mlp/model.h"
#include "mlp/options.h"

namespace mc = muster::comm;
namespace mt = muster::train;

namespace {

using Floats = DeviceArray<float>;

class Trainer {
 public:
  Trainer(mc::Communicator& all, mc::Communicator& host, size_t batch)
      : rows_(batch / static_cast<size_t>(all.size())) {
    mlp::Model model;
    for (const mt::NamedTensor& start : model.parameters()) {
      const std::span<const float> values(static_cast<const float*>(start.data.data),
                                          start.data.count);
      weights_.emplace_back(values);
      velocity_.emplace_back(std::vector<float>(values.size(), 0));
      parameters_.emplace_back(start.name, start.shape, weights_.back().buffer(compute_));
    }
    for (size_t size : mlp::kSizes) {
      outputs_.emplace_back(rows_ * size);
      gradients_.emplace_back(rows_ * size);
    }
    mt::DdpOptions options;
    options.allocate = [this](size_t, size_t count, mc::DataType) {
      return buckets_.emplace_back(count).buffer(reduce_);
    };
    options.before_all_reduce = [this](size_t) { reduce_.wait_for(compute_); };
    options.after_all_reduce = [this] { compute_.wait_for(reduce_); };
    options.control = &host;
    ddp_.emplace(mt::DistributedDataParallel::make(all, parameters_, options).value());
  }

  // This rank's mean loss.
  double step(const mlp::Images& images, float rate) {
    const Floats pixels{std::span<const float>(images.pixels)};
    const DeviceArray<int> labels{std::span<const int>(images.labels)};
    const Floats loss(rows_);
    for (const Floats& bucket : buckets_) {
      must(cudaMemsetAsync(bucket.data(), 0, bucket.size() * sizeof(float), compute_), "memset");
    }
    forward(pixels.data(), rows_);
    device::cross_entropy(compute_, outputs_.back().data(), labels.data(), loss.data(), rows_,
                          mlp::kDigits);
    backward(pixels.data());
    ddp_->finish().value();
    update(rate);
    double sum = 0;
    for (float one : loss.values(compute_))
      sum += one;
    return sum;
  }

  // The share of these images that are seen right, as many at a time as a step takes.
  double accuracy(const mlp::Images& images) {
    double right = 0;
    for (size_t first = 0; first < images.size(); first += rows_) {
      const size_t rows = std::min(rows_, images.size() - first);
      const Floats pixels{
          std::span(images.pixels).subspan(first * mlp::kPixels, rows * mlp::kPixels)};
      forward(pixels.data(), rows);
      const std::vector<float> scores = outputs_.back().values(compute_);
      right +=
          static_cast<double>(rows) * mlp::accuracy(std::span(scores).first(rows * mlp::kDigits),
                                                    std::span(images.labels).subspan(first, rows));
    }
    return right / static_cast<double>(images.size());
  }

 private:
  void forward(const float* pixels, size_t rows) {
    for (size_t l = 0; l < mlp::kLayers; ++l) {
      device::linear(compute_, l == 0 ? pixels : outputs_[l].data(), weights_[2 * l].data(),
                     weights_[2 * l + 1].data(), outputs_[l + 1].data(), rows, mlp::kSizes[l],
                     mlp::kSizes[l + 1], l + 1 < mlp::kLayers);
    }
  }

  void backward(const float* pixels) {
    for (size_t l = mlp::kLayers; l-- > 0;) {
      const size_t in = mlp::kSizes[l];
      const size_t out = mlp::kSizes[l + 1];
      const float* x = l == 0 ? pixels : outputs_[l].data();
      const float* dy = l + 1 == mlp::kLayers ? outputs_.back().data() : gradients_[l + 1].data();
      device::linear_gradients(compute_, x, dy, ddp_->gradient<float>(2 * l).data(),
                               ddp_->gradient<float>(2 * l + 1).data(), rows_, in, out);
      ddp_->ready(2 * l + 1);
      ddp_->ready(2 * l);
      if (l == 0) break;
      device::linear_backward(compute_, x, dy, weights_[2 * l].data(), gradients_[l].data(), rows_,
                              in, out);
    }
  }

  void update(float rate) {
    for (size_t p = 0; p < weights_.size(); ++p) {
      device::descend(compute_, weights_[p].data(), ddp_->gradient<float>(p).data(),
                      velocity_[p].data(), weights_[p].size(), rate);
    }
  }

  size_t rows_;  // of this rank's part of a batch
  DeviceStream compute_;
  DeviceStream reduce_;
  std::vector<Floats> weights_, velocity_, outputs_, gradients_, buckets_;
  std::vector<mt::NamedTensor> parameters_;
  std::optional<mt::DistributedDataParallel> ddp_;
};

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Result<mc::Communicator> made = world.communicator(mc::Backend::kNccl);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  mc::Communicator& all = *made;
  if (options.number("batch") % all.size() != 0) {
    throw std::invalid_argument("--batch does not divide by the number of ranks");
  }
  mc::Communicator host = world.communicator(mc::Backend::kGloo, {.name = "host"}).value();
  const mlp::Dataset data = mlp::load_digits(options.text("data"));
  const auto batch = static_cast<size_t>(options.number("batch"));
  use_device_of(world.local_rank());
  Trainer trainer(all, host, batch);
  mt::DistributedSampler sampler(static_cast<int64_t>(data.training.size()), all,
                                 {true, mlp::kSeed, true});
  const size_t part = batch / static_cast<size_t>(all.size());
  const int64_t steps = sampler.size() / static_cast<int64_t>(part);
  const int64_t epochs = options.number("epochs");
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    const std::vector<int64_t> mine = sampler.indices();
    std::vector<double> loss = {0};
    for (int64_t i = 0; i < steps; ++i) {
      const auto images =
          data.training.pick(std::span(mine).subspan(static_cast<size_t>(i) * part, part));
      const double one = trainer.step(images, static_cast<float>(options.real("rate")));
      loss[0] += one / static_cast<double>(steps);
      mc::report_progress({epoch * steps + i + 1, epochs * steps, one});
    }
    host.all_reduce(loss, mc::ReduceOp::kAverage).wait().value();
    if (all.rank() != 0) continue;
    std::printf("epoch %ld  loss %.6f  test accuracy %.1f%%\n", static_cast<long>(epoch), loss[0],
                100 * trainer.accuracy(data.test));
    std::fflush(stdout);
  }
  all.close().value();
  host.close().value();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mc::record([argc, argv] {
    return train(
        {argc,
         argv,
         {{"data", mlp::kDigitsFile}, {"epochs", "8"}, {"batch", "56"}, {"rate", "0.05"}}});
  });
}
