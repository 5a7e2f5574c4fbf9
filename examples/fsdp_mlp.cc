// SPDX-License-Identifier: Apache-2.0
// Fully sharded training, as PyTorch's FSDP: each rank keeps a part of every layer's parameters and
// of the optimiser's state. A layer's parameters are put together by all_gather just before it is
// used, in the forward and again in the backward pass, and its gradients are averaged and cut up by
// reduce_scatter just after. No rank ever holds more than one whole layer.
//
//   muster --nproc-per-node 4 build/release/examples/fsdp_mlp --checkpoint digits.d
//
// The checkpoint is sharded too: it is resumed by any number of ranks.
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

// One layer, weight and bias in one row of numbers that is padded so that it divides.
class ShardedLayer {
 public:
  ShardedLayer(mc::Communicator& communicator, size_t number)
      : all_(communicator), in(mlp::kSizes[number]), out(mlp::kSizes[number + 1]) {
    const auto ranks = static_cast<size_t>(all_.size());
    const size_t part = (in * out + out + ranks - 1) / ranks;
    const mlp::Layer whole(number);  // the same on all ranks
    std::vector<float> row = whole.weight;
    row.insert(row.end(), whole.bias.begin(), whole.bias.end());
    row.resize(part * ranks, 0.0F);
    const auto first = row.begin() + static_cast<int64_t>(part) * all_.rank();
    shard.assign(first, first + static_cast<int64_t>(part));
    velocity.resize(part);
    gradient_.resize(part);
    name = whole.name;
  }

  // The whole layer, until the vector goes.
  std::vector<float> gather() {
    std::vector<float> whole(shard.size() * static_cast<size_t>(all_.size()));
    all_.all_gather(shard, whole).wait().value();
    return whole;
  }
  mlp::Floats weight(std::vector<float>& whole) const { return mlp::Floats(whole).first(in * out); }
  mlp::Floats bias(std::vector<float>& whole) const {
    return mlp::Floats(whole).subspan(in * out, out);
  }

  // Keeps this rank's part of the average.
  void scatter_gradients(const std::vector<float>& whole) {
    all_.reduce_scatter(whole, gradient_, mc::ReduceOp::kAverage).wait().value();
  }
  void step(const mlp::Sgd& sgd) { sgd.step(shard, gradient_, velocity); }

 private:
  mc::Communicator& all_;

 public:
  size_t in;
  size_t out;
  std::string name;
  std::vector<float> shard;
  std::vector<float> velocity;

 private:
  std::vector<float> gradient_;
};

struct Network {
  explicit Network(mc::Communicator& communicator) {
    for (size_t i = 0; i < mlp::kLayers; ++i)
      layers.emplace_back(communicator, i);
  }

  const std::vector<float>& forward(const mlp::Images& images) {
    outputs.assign(1, images.pixels);
    for (size_t i = 0; i < layers.size(); ++i) {
      std::vector<float> whole = layers[i].gather();
      std::vector<float> y(images.size() * layers[i].out);
      mlp::linear(outputs[i], layers[i].weight(whole), layers[i].bias(whole), y);
      if (i + 1 < layers.size()) mlp::relu(y);
      outputs.push_back(std::move(y));
    }
    return outputs.back();
  }

  double backward(const mlp::Images& images) {
    std::vector<float> d = outputs.back();
    const double loss = mlp::cross_entropy(d, images.labels, images.size());
    for (size_t i = layers.size(); i-- > 0;) {
      ShardedLayer& layer = layers[i];
      std::vector<float> whole = layer.gather();
      std::vector<float> gradients(whole.size(), 0.0F);
      mlp::linear_gradients(outputs[i], d, layer.weight(gradients), layer.bias(gradients));
      layer.scatter_gradients(gradients);
      if (i == 0) break;
      d = mlp::linear_backward(d, layer.weight(whole), layer.out);
      mlp::relu_backward(outputs[i], d);
    }
    return loss;
  }

  std::vector<mt::NamedTensor> state() {
    std::vector<mt::NamedTensor> all;
    for (ShardedLayer& layer : layers) {
      const std::vector<int64_t> shape{static_cast<int64_t>(layer.shard.size())};
      all.emplace_back(layer.name, shape, layer.shard);
      all.emplace_back(layer.name + ".velocity", shape, layer.velocity);
    }
    return all;
  }

  std::vector<ShardedLayer> layers;
  std::vector<std::vector<float>> outputs;
};

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  if (options.number("batch") % all.size() != 0) {
    throw std::invalid_argument("--batch does not divide by the number of ranks");
  }
  const mlp::Dataset data = mlp::load_digits(options.text("data"));
  const size_t batch = static_cast<size_t>(options.number("batch") / all.size());
  mt::DistributedSampler sampler(static_cast<int64_t>(data.training.size()), all,
                                 {true, mlp::kSeed, true});
  const size_t steps = static_cast<size_t>(sampler.size()) / batch;
  const mlp::Sgd sgd{static_cast<float>(options.real("rate")), 0.9F};
  Network network(all);

  const std::string& checkpoint = options.text("checkpoint");
  long epoch = 0;
  if (!checkpoint.empty()) {
    const auto loaded = mt::load_sharded(all, checkpoint, network.state(), {true}).value();
    if (loaded) epoch = std::stol(loaded->at("epoch")) + 1;
    if (loaded && all.rank() == 0) std::printf("resuming at epoch %ld\n", epoch);
  }
  const long epochs = options.number("epochs");
  for (; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    const std::vector<int64_t> mine = sampler.indices();
    std::vector<double> loss = {0};
    for (size_t i = 0; i < steps; ++i) {
      const mlp::Images images = data.training.pick(std::span(mine).subspan(i * batch, batch));
      network.forward(images);
      const double one = network.backward(images);
      for (ShardedLayer& layer : network.layers)
        layer.step(sgd);
      loss[0] += one / static_cast<double>(steps);
      const auto done = epoch * static_cast<int64_t>(steps) + static_cast<int64_t>(i) + 1;
      mc::report_progress({done, epochs * static_cast<int64_t>(steps), one});
    }
    all.all_reduce(loss, mc::ReduceOp::kAverage).wait().value();
    // Everybody takes part: the layers are put together for it.
    const double right = mlp::accuracy(network.forward(data.test), data.test.labels);
    if (all.rank() == 0) {
      std::printf("epoch %ld  loss %.6f  test accuracy %.1f%%\n", epoch, loss[0], 100 * right);
      std::fflush(stdout);
    }
    if (checkpoint.empty()) continue;
    const mt::Metadata metadata{{"epoch", std::to_string(epoch)}};
    mt::save_sharded(all, checkpoint, network.state(), metadata).value();
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
                   {"checkpoint", ""}}});
  });
}
