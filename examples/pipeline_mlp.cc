// SPDX-License-Identifier: Apache-2.0
// Pipeline-parallel training: each rank has some of the layers, one after another. A batch is cut
// into micro-batches; while a rank works on one, the rank before it works on the next (GPipe's
// order: all forward, then all backward). Activations go up by send and recv, gradients come down.
//
//   muster --nproc-per-node 4 build/release/examples/pipeline_mlp --micro-batches 4
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

struct StageLayer {
  explicit StageLayer(size_t number)
      : layer(number),
        last(number + 1 == mlp::kLayers),
        dweight(layer.weight.size()),
        dbias(layer.bias.size()),
        weight_velocity(layer.weight.size()),
        bias_velocity(layer.bias.size()) {}

  void step(const mlp::Sgd& sgd) {
    sgd.step(layer.weight, dweight, weight_velocity);
    sgd.step(layer.bias, dbias, bias_velocity);
    std::fill(dweight.begin(), dweight.end(), 0.0F);
    std::fill(dbias.begin(), dbias.end(), 0.0F);
  }

  mlp::Layer layer;
  bool last;
  std::vector<float> dweight;
  std::vector<float> dbias;
  std::vector<float> weight_velocity;
  std::vector<float> bias_velocity;
};

// This rank's layers.
class Stage {
 public:
  explicit Stage(mc::Communicator& communicator) : all_(communicator) {
    const auto ranks = static_cast<size_t>(all_.size());
    const auto rank = static_cast<size_t>(all_.rank());
    for (size_t i = rank * mlp::kLayers / ranks; i < (rank + 1) * mlp::kLayers / ranks; ++i) {
      layers_.emplace_back(i);
    }
  }
  bool first() const { return all_.rank() == 0; }
  bool last() const { return all_.rank() + 1 == all_.size(); }

  // Of one micro-batch: the scores on the last rank, what went on to the next one elsewhere.
  const std::vector<float>& forward(const mlp::Images& images, size_t micro) {
    if (kept_.size() <= micro) kept_.resize(micro + 1);
    std::vector<std::vector<float>>& kept = kept_[micro];
    kept.assign(1, images.pixels);
    if (!first()) {
      kept[0].resize(images.size() * layers_.front().layer.in);
      all_.recv(kept[0], all_.rank() - 1).wait().value();
    }
    for (const StageLayer& one : layers_) {
      std::vector<float> y(images.size() * one.layer.out);
      mlp::linear(kept.back(), one.layer.weight, one.layer.bias, y);
      if (!one.last) mlp::relu(y);
      kept.push_back(std::move(y));
    }
    // kept_ holds it until the backward pass, so it may be on its way meanwhile.
    if (!last()) sent_.push_back(all_.isend(kept.back(), all_.rank() + 1));
    return kept.back();
  }

  // `d` is the gradient by the scores on the last rank; elsewhere it comes from the next one.
  void backward(std::vector<float> d, size_t micro) {
    const std::vector<std::vector<float>>& kept = kept_[micro];
    if (!last()) {
      d.resize(kept.back().size());
      all_.recv(d, all_.rank() + 1).wait().value();
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      StageLayer& one = layers_[i];
      if (!one.last) mlp::relu_backward(kept[i + 1], d);
      mlp::linear_gradients(kept[i], d, one.dweight, one.dbias);
      if (i > 0 || !first()) d = mlp::linear_backward(d, one.layer.weight, one.layer.out);
    }
    if (!first()) all_.send(d, all_.rank() - 1).wait().value();
  }

  void wait_for_sends() {
    for (mc::Work& work : sent_)
      work.wait().value();
    sent_.clear();
  }
  void step(const mlp::Sgd& sgd) {
    for (StageLayer& one : layers_)
      one.step(sgd);
  }

 private:
  mc::Communicator& all_;
  std::vector<StageLayer> layers_;
  std::vector<std::vector<std::vector<float>>> kept_;  // by micro-batch: what each layer got
  std::vector<mc::Work> sent_;
};

// One batch through the pipeline; its loss, on the last rank.
double train_batch(Stage& stage, const mlp::Images& images, size_t micro_batches) {
  const size_t size = images.size() / micro_batches;
  std::vector<int64_t> numbers(images.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int64_t>(i);
  double loss = 0;
  std::vector<std::vector<float>> scores(micro_batches);
  for (size_t micro = 0; micro < micro_batches; ++micro) {
    const mlp::Images part = images.pick(std::span(numbers).subspan(micro * size, size));
    scores[micro] = stage.forward(part, micro);
    if (!stage.last()) continue;
    loss += mlp::cross_entropy(scores[micro], part.labels, images.size());
  }
  for (size_t micro = micro_batches; micro-- > 0;) {
    stage.backward(std::move(scores[micro]), micro);
  }
  stage.wait_for_sends();
  return loss;
}

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  const auto batch = static_cast<size_t>(options.number("batch"));
  const auto micro_batches = static_cast<size_t>(options.number("micro-batches"));
  if (static_cast<size_t>(all.size()) > mlp::kLayers || batch % micro_batches != 0) {
    throw std::invalid_argument("more ranks than layers, or a batch that cannot be cut so");
  }
  const mlp::Dataset data = mlp::load_digits(options.text("data"));
  const mlp::Sgd sgd{static_cast<float>(options.real("rate")), 0.9F};
  Stage stage(all);
  const auto images = static_cast<int64_t>(data.training.size());
  const size_t steps = data.training.size() / batch;
  const long epochs = options.number("epochs");
  for (long epoch = 0; epoch < epochs; ++epoch) {
    const auto order = mt::random_permutation(images, mlp::kSeed + epoch);
    std::vector<double> results = {0, 0};  // loss and accuracy
    for (size_t i = 0; i < steps; ++i) {
      const mlp::Images part = data.training.pick(std::span(order).subspan(i * batch, batch));
      results[0] += train_batch(stage, part, micro_batches) / static_cast<double>(steps);
      stage.step(sgd);
      const auto done = epoch * static_cast<int64_t>(steps) + static_cast<int64_t>(i) + 1;
      mc::report_progress({done, epochs * static_cast<int64_t>(steps)});
    }
    const std::vector<float>& scores = stage.forward(data.test, 0);
    if (stage.last()) results[1] = mlp::accuracy(scores, data.test.labels);
    stage.wait_for_sends();
    all.broadcast(results, all.size() - 1).wait().value();
    if (all.rank() == 0) {
      std::printf("epoch %ld  loss %.6f  test accuracy %.1f%%\n", epoch, results[0],
                  100 * results[1]);
      std::fflush(stdout);
    }
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
                   {"micro-batches", "4"},
                   {"rate", "0.05"}}});
  });
}
