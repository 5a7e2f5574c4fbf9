// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel training: every rank has the whole batch and a part of every layer. Layers come
// in pairs. The first of a pair is cut by its outputs ("column parallel"), so each rank computes
// some of them and needs nothing from the others. The second is cut by its inputs ("row parallel"):
// it takes just these numbers, and what the ranks get is summed by one all_reduce. In the backward
// pass the gradient by the pair's input is summed in the same way.
//
//   muster --nproc-per-node 4 build/release/examples/tensor_parallel_mlp
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

// A part of a layer with its optimiser's state.
struct Part {
  size_t out = 0;
  std::vector<float> weight{};
  std::vector<float> bias{};
  std::vector<float> weight_velocity{};
  std::vector<float> bias_velocity{};

  void step(const mlp::Sgd& sgd, const std::vector<float>& dweight,
            const std::vector<float>& dbias) {
    weight_velocity.resize(weight.size());
    bias_velocity.resize(bias.size());
    sgd.step(weight, dweight, weight_velocity);
    sgd.step(bias, dbias, bias_velocity);
  }
};

// Some of the outputs: some rows of the weight.
Part column_part(size_t number, size_t rank, size_t ranks) {
  const mlp::Layer whole(number);  // the same on all ranks
  const size_t out = whole.out / ranks;
  Part part{out};
  const mlp::ConstFloats weight(whole.weight);
  const mlp::ConstFloats rows = weight.subspan(rank * out * whole.in, out * whole.in);
  part.weight.assign(rows.begin(), rows.end());
  const mlp::ConstFloats bias = mlp::ConstFloats(whole.bias).subspan(rank * out, out);
  part.bias.assign(bias.begin(), bias.end());
  return part;
}

// Some of the inputs: some columns of the weight, and on one rank the bias, which is added once.
Part row_part(size_t number, size_t rank, size_t ranks) {
  const mlp::Layer whole(number);
  const size_t in = whole.in / ranks;
  Part part{whole.out};
  for (size_t o = 0; o < whole.out; ++o) {
    const auto first = whole.weight.begin() + static_cast<int64_t>(o * whole.in + rank * in);
    part.weight.insert(part.weight.end(), first, first + static_cast<int64_t>(in));
  }
  part.bias = rank == 0 ? whole.bias : std::vector<float>(whole.out, 0.0F);
  return part;
}

// Two layers, with a ReLU after each but the network's last.
class Pair {
 public:
  Pair(mc::Communicator& communicator, size_t number)
      : all_(communicator), last_(number + 2 == mlp::kLayers) {
    const auto rank = static_cast<size_t>(all_.rank());
    const auto ranks = static_cast<size_t>(all_.size());
    first_ = column_part(number, rank, ranks);
    second_ = row_part(number + 1, rank, ranks);
  }

  const std::vector<float>& forward(std::vector<float> x, size_t rows) {
    x_ = std::move(x);
    middle_.resize(rows * first_.out);
    mlp::linear(x_, first_.weight, first_.bias, middle_);
    mlp::relu(middle_);
    y_.resize(rows * second_.out);
    mlp::linear(middle_, second_.weight, second_.bias, y_);
    all_.all_reduce(y_).wait().value();
    if (!last_) mlp::relu(y_);
    return y_;
  }

  // From the gradient by the output makes that by the input, and takes a step.
  std::vector<float> backward(std::vector<float> d, const mlp::Sgd& sgd) {
    if (!last_) mlp::relu_backward(y_, d);
    std::vector<float> dweight(second_.weight.size(), 0.0F);
    std::vector<float> dbias(second_.bias.size(), 0.0F);
    mlp::linear_gradients(middle_, d, dweight, dbias);
    std::vector<float> dmiddle = mlp::linear_backward(d, second_.weight, second_.out);
    if (all_.rank() != 0) std::fill(dbias.begin(), dbias.end(), 0.0F);
    second_.step(sgd, dweight, dbias);

    mlp::relu_backward(middle_, dmiddle);
    dweight.assign(first_.weight.size(), 0.0F);
    dbias.assign(first_.bias.size(), 0.0F);
    mlp::linear_gradients(x_, dmiddle, dweight, dbias);
    std::vector<float> dx = mlp::linear_backward(dmiddle, first_.weight, first_.out);
    first_.step(sgd, dweight, dbias);
    all_.all_reduce(dx).wait().value();
    return dx;
  }

 private:
  mc::Communicator& all_;
  bool last_;
  Part first_;
  Part second_;
  std::vector<float> x_;
  std::vector<float> middle_;
  std::vector<float> y_;
};

int train(const mlp::Options& options) {
  mc::World world = mc::World::join().value();
  mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
  if (mlp::kSizes[1] % static_cast<size_t>(all.size()) != 0) {
    throw std::invalid_argument("the layers' 64 numbers do not divide by the number of ranks");
  }
  const mlp::Dataset data = mlp::load_digits(options.text("data"));
  const auto batch = static_cast<size_t>(options.number("batch"));
  const mlp::Sgd sgd{static_cast<float>(options.real("rate")), 0.9F};
  Pair bottom(all, 0);
  Pair top(all, 2);
  const size_t steps = data.training.size() / batch;
  const long epochs = options.number("epochs");
  for (long epoch = 0; epoch < epochs; ++epoch) {
    // All ranks visit the same samples.
    const auto order =
        mt::random_permutation(static_cast<int64_t>(data.training.size()), mlp::kSeed + epoch);
    double loss = 0;
    for (size_t i = 0; i < steps; ++i) {
      const mlp::Images images = data.training.pick(std::span(order).subspan(i * batch, batch));
      std::vector<float> d = top.forward(bottom.forward(images.pixels, batch), batch);
      const double one = mlp::cross_entropy(d, images.labels, batch);
      bottom.backward(top.backward(std::move(d), sgd), sgd);
      loss += one / static_cast<double>(steps);
      const auto done = epoch * static_cast<int64_t>(steps) + static_cast<int64_t>(i) + 1;
      mc::report_progress({done, epochs * static_cast<int64_t>(steps), one});
    }
    const size_t tests = data.test.size();
    const auto& scores = top.forward(bottom.forward(data.test.pixels, tests), tests);
    const double right = mlp::accuracy(scores, data.test.labels);
    if (all.rank() == 0) {
      std::printf("epoch %ld  loss %.6f  test accuracy %.1f%%\n", epoch, loss, 100 * right);
      std::fflush(stdout);
    }
  }
  all.close().value();
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
