// SPDX-License-Identifier: Apache-2.0
// Data-parallel training on real handwritten digits: each rank has the whole network and its part
// of every batch, and the gradients are averaged while the backward pass is still making others.
//
//   muster --nproc-per-node 4 build/release/examples/ddp_mlp
//
// The batch is the whole job's, so that any number of ranks trains the same network to rounding.
#include <muster/comm.h>
#include <muster/train.h>

#include <cstdio>
#include <string>
#include <vector>

#include "mlp/model.h"
#include "mlp/options.h"

namespace mc = muster::comm;
namespace mt = muster::train;

namespace {

struct Trainer {
  Trainer(mc::Communicator& communicator, const mlp::Options& options)
      : all(communicator),
        data(mlp::load_digits(options.text("data"))),
        ddp(mt::DistributedDataParallel::make(all, model.parameters()).value()),
        sampler(static_cast<int64_t>(data.training.size()), all, {true, mlp::kSeed, true}),
        sgd{static_cast<float>(options.real("rate")), 0.9F},
        batch(options.number("batch") / all.size()),
        steps(sampler.size() / batch) {
    for (const mt::NamedTensor& parameter : ddp.parameters()) {
      velocity.emplace_back(parameter.data.count, 0.0F);
    }
  }

  double step(const mlp::Images& images) {
    ddp.zero_gradients();
    model.forward(images);
    const double loss = model.backward(
        images, [this](size_t i) { return ddp.gradient<float>(i); },
        [this](size_t i) { ddp.ready(i); });
    ddp.finish().value();
    for (size_t i = 0; i < velocity.size(); ++i) {
      const mc::Buffer& values = ddp.parameters()[i].data;
      sgd.step({static_cast<float*>(values.data), values.count}, ddp.gradient<float>(i),
               velocity[i]);
    }
    return loss;
  }

  // The mean loss over all ranks.
  double epoch(int64_t number, int64_t epochs) {
    sampler.set_epoch(number);
    const std::vector<int64_t> mine = sampler.indices();
    std::vector<double> loss = {0};
    for (int64_t i = 0; i < steps; ++i) {
      const auto first = static_cast<size_t>(i * batch);
      const std::span<const int64_t> part(mine);
      const double one = step(data.training.pick(part.subspan(first, static_cast<size_t>(batch))));
      loss[0] += one / static_cast<double>(steps);
      mc::report_progress({number * steps + i + 1, epochs * steps, one});
    }
    all.all_reduce(loss, mc::ReduceOp::kAverage).wait().value();
    return loss[0];
  }

  mc::Communicator& all;
  mlp::Dataset data;
  mlp::Model model;
  mt::DistributedDataParallel ddp;
  mt::DistributedSampler sampler;
  mlp::Sgd sgd;
  int64_t batch;  // of this rank
  int64_t steps;  // an epoch
  std::vector<std::vector<float>> velocity;
};

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  if (options.number("batch") % all.size() != 0) {
    throw std::invalid_argument("--batch does not divide by the number of ranks");
  }
  Trainer trainer(all, options);
  for (int64_t epoch = 0; epoch < options.number("epochs"); ++epoch) {
    const double loss = trainer.epoch(epoch, options.number("epochs"));
    if (all.rank() != 0) continue;
    const double right =
        mlp::accuracy(trainer.model.forward(trainer.data.test), trainer.data.test.labels);
    mc::report_values({{"accuracy", right}});
    std::printf("epoch %ld  loss %.6f  test accuracy %.1f%%\n", static_cast<long>(epoch), loss,
                100 * right);
    std::fflush(stdout);
  }
  if (!options.text("save").empty()) {
    mt::save_checkpoint(all, options.text("save"), trainer.model.parameters()).value();
  }
  all.close().value();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mc::record([argc, argv] {
    return train({argc,
                  argv,
                  {{"data", mlp::kDigitsFile},
                   {"epochs", "8"},
                   {"batch", "56"},
                   {"rate", "0.05"},
                   {"save", ""}}});
  });
}
