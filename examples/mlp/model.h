// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/train/tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "mlp/digits.h"
#include "mlp/layers.h"

namespace mlp {

// The network of all examples: four linear layers, ReLU between them.
constexpr size_t kSizes[] = {kPixels, 64, 64, 64, kDigits};
constexpr size_t kLayers = 4;
constexpr unsigned kSeed = 1;

struct Layer {
  explicit Layer(size_t number)
      : in(kSizes[number]),
        out(kSizes[number + 1]),
        weight(out * in),
        bias(out),
        name("layer" + std::to_string(number)) {
    initialise(weight, in, kSeed + 2 * static_cast<unsigned>(number));
    initialise(bias, in, kSeed + 2 * static_cast<unsigned>(number) + 1);
  }
  size_t in;
  size_t out;
  std::vector<float> weight;
  std::vector<float> bias;
  std::string name;
};

// The whole network in one process. Parameter 2 i is layer i's weight, 2 i + 1 its bias.
class Model {
 public:
  Model() {
    for (size_t i = 0; i < kLayers; ++i)
      layers.emplace_back(i);
  }

  std::vector<muster::train::NamedTensor> parameters() {
    std::vector<muster::train::NamedTensor> all;
    for (Layer& layer : layers) {
      const auto in = static_cast<int64_t>(layer.in);
      const auto out = static_cast<int64_t>(layer.out);
      all.emplace_back(layer.name + ".weight", std::vector<int64_t>{out, in}, layer.weight);
      all.emplace_back(layer.name + ".bias", std::vector<int64_t>{out}, layer.bias);
    }
    return all;
  }

  // The scores of each image. What the layers put out is kept for backward().
  const std::vector<float>& forward(const Images& images) {
    outputs_.assign(1, images.pixels);
    for (size_t i = 0; i < kLayers; ++i) {
      std::vector<float> y(images.size() * layers[i].out);
      linear(outputs_[i], layers[i].weight, layers[i].bias, y);
      if (i + 1 < kLayers) relu(y);
      outputs_.push_back(std::move(y));
    }
    return outputs_.back();
  }

  // The mean loss of the images that forward() was given. Adds to gradient(parameter), a span, and
  // calls ready(parameter) as soon as that is complete.
  template <typename Gradient, typename Ready>
  double backward(const Images& images, Gradient&& gradient, Ready&& ready) {
    std::vector<float> d = outputs_.back();
    const double loss = cross_entropy(d, images.labels, images.size());
    for (size_t i = kLayers; i-- > 0;) {
      linear_gradients(outputs_[i], d, gradient(2 * i), gradient(2 * i + 1));
      ready(2 * i + 1);
      ready(2 * i);
      if (i == 0) break;
      d = linear_backward(d, layers[i].weight, layers[i].out);
      relu_backward(outputs_[i], d);
    }
    return loss;
  }

  std::vector<Layer> layers;

 private:
  std::vector<std::vector<float>> outputs_;  // outputs_[i] is what layer i gets
};

}  // namespace mlp
