// SPDX-License-Identifier: Apache-2.0
// Training that survives: every few steps rank 0 writes a checkpoint of everything that the rest of
// the training depends on (parameters, momentum, the step), and whoever is started finds it and
// goes on from there. A worker that is killed costs the steps since then; the losses after it are
// those of a training that was never hurt.
//
//   muster --nproc-per-node 4 --max-restarts 3 build/release/examples/fault_tolerant
//       --checkpoint digits.safetensors --die-at-step 70     (all in one line)
//
// --die-at-step kills rank --die-rank at that step of the first attempt, as `kill -9` would.
#include <muster/comm.h>
#include <muster/train.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "mlp/model.h"
#include "mlp/options.h"

namespace mc = muster::comm;
namespace mt = muster::train;

namespace {

class Trainer {
 public:
  Trainer(mc::Communicator& communicator, const mlp::Options& options)
      : all_(communicator),
        data_(mlp::load_digits(options.text("data"))),
        ddp_(mt::DistributedDataParallel::make(all_, model_.parameters()).value()),
        sampler_(static_cast<int64_t>(data_.training.size()), all_, {true, mlp::kSeed, true}),
        sgd_{static_cast<float>(options.real("rate")), 0.9F},
        batch_(static_cast<size_t>(options.number("batch") / all_.size())),
        steps_an_epoch_(sampler_.size() / static_cast<int64_t>(batch_)),
        checkpoint_(options.text("checkpoint")) {
    for (const mt::NamedTensor& parameter : ddp_.parameters()) {
      velocity_.emplace_back(parameter.data.count, 0.0F);
    }
  }

  // The step to go on with.
  int64_t resume() {
    if (checkpoint_.empty()) return 0;
    const auto loaded = mt::load_checkpoint(all_, checkpoint_, state()).value();
    if (!loaded) return 0;
    const int64_t step = std::stol(loaded->at("step")) + 1;
    if (all_.rank() == 0) std::printf("resuming at step %ld\n", static_cast<long>(step));
    return step;
  }

  void save(int64_t step) {
    if (checkpoint_.empty()) return;
    mt::save_checkpoint(all_, checkpoint_, state(), {{"step", std::to_string(step)}}).value();
  }

  // The mean loss of all ranks. Which images it uses depends on its number alone.
  double step(int64_t number) {
    const int64_t epoch = number / steps_an_epoch_;
    if (epoch != epoch_) {
      sampler_.set_epoch(epoch);
      mine_ = sampler_.indices();
      epoch_ = epoch;
    }
    const size_t first = static_cast<size_t>(number % steps_an_epoch_) * batch_;
    const mlp::Images images = data_.training.pick(std::span(mine_).subspan(first, batch_));
    ddp_.zero_gradients();
    model_.forward(images);
    std::vector<double> loss = {model_.backward(
        images, [this](size_t i) { return ddp_.gradient<float>(i); },
        [this](size_t i) { ddp_.ready(i); })};
    ddp_.finish().value();
    for (size_t i = 0; i < velocity_.size(); ++i) {
      const mc::Buffer& values = ddp_.parameters()[i].data;
      sgd_.step({static_cast<float*>(values.data), values.count}, ddp_.gradient<float>(i),
                velocity_[i]);
    }
    all_.all_reduce(loss, mc::ReduceOp::kAverage).wait().value();
    return loss[0];
  }

  double accuracy() { return mlp::accuracy(model_.forward(data_.test), data_.test.labels); }

 private:
  std::vector<mt::NamedTensor> state() {
    std::vector<mt::NamedTensor> all = ddp_.parameters();
    for (size_t i = 0; i < velocity_.size(); ++i) {
      all.emplace_back(all[i].name + ".velocity", all[i].shape, velocity_[i]);
    }
    return all;
  }

  mc::Communicator& all_;
  mlp::Dataset data_;
  mlp::Model model_;
  mt::DistributedDataParallel ddp_;
  mt::DistributedSampler sampler_;
  mlp::Sgd sgd_;
  size_t batch_;  // of this rank
  int64_t steps_an_epoch_;
  std::string checkpoint_;
  std::vector<std::vector<float>> velocity_;
  int64_t epoch_ = -1;
  std::vector<int64_t> mine_;  // this rank's images of the epoch
};

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  if (options.number("batch") % all.size() != 0) {
    throw std::invalid_argument("--batch does not divide by the number of ranks");
  }
  Trainer trainer(all, options);
  const int64_t steps = options.number("steps");
  for (int64_t step = trainer.resume(); step < steps; ++step) {
    const bool dies = world.attempt() == 0 && step == options.number("die-at-step") &&
                      all.rank() == options.number("die-rank");
    if (dies) std::raise(SIGKILL);
    const double loss = trainer.step(step);
    mc::report_progress({step + 1, steps, loss});
    if (all.rank() == 0) {
      std::printf("step %ld  loss %.6f\n", static_cast<long>(step), loss);
      std::fflush(stdout);
    }
    if ((step + 1) % options.number("every") == 0 || step + 1 == steps) trainer.save(step);
  }
  if (all.rank() == 0) std::printf("test accuracy %.1f%%\n", 100 * trainer.accuracy());
  all.close().value();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mc::record([argc, argv] {
    return train({argc,
                  argv,
                  {{"data", mlp::kDigitsFile},
                   {"steps", "150"},
                   {"batch", "56"},
                   {"rate", "0.05"},
                   {"checkpoint", ""},
                   {"every", "10"},
                   {"die-at-step", "-1"},
                   {"die-rank", "1"}}});
  });
}
