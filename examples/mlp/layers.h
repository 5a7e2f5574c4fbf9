// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

// What a multi-layer perceptron is made of, on rows of floats. Sizes come from the spans: x has
// rows * in numbers, a weight out * in, a bias out.
namespace mlp {

using Floats = std::span<float>;
using ConstFloats = std::span<const float>;

// A layer's first values, the same for the same seed: uniform in +-1/sqrt(in), as PyTorch's Linear.
inline void initialise(Floats values, size_t in, unsigned seed) {
  std::mt19937 random(seed);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  for (float& value : values) {
    value = static_cast<float>((random() / 2147483648.0 - 1) * bound);
  }
}

// y = x weight^T + bias
inline void linear(ConstFloats x, ConstFloats weight, ConstFloats bias, Floats y) {
  const size_t out = bias.size();
  const size_t in = weight.size() / out;
  for (size_t row = 0; row < y.size() / out; ++row) {
    for (size_t o = 0; o < out; ++o) {
      float sum = bias[o];
      for (size_t i = 0; i < in; ++i)
        sum += x[row * in + i] * weight[o * in + i];
      y[row * out + o] = sum;
    }
  }
}

// From dy, the loss' gradient by y: adds those by weight and bias.
inline void linear_gradients(ConstFloats x, ConstFloats dy, Floats dweight, Floats dbias) {
  const size_t out = dbias.size();
  const size_t in = dweight.size() / out;
  for (size_t row = 0; row < dy.size() / out; ++row) {
    for (size_t o = 0; o < out; ++o) {
      const float d = dy[row * out + o];
      dbias[o] += d;
      for (size_t i = 0; i < in; ++i)
        dweight[o * in + i] += d * x[row * in + i];
    }
  }
}

// And the one by x, for the layer before.
inline std::vector<float> linear_backward(ConstFloats dy, ConstFloats weight, size_t out) {
  const size_t in = weight.size() / out;
  const size_t rows = dy.size() / out;
  std::vector<float> dx(rows * in, 0);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t o = 0; o < out; ++o) {
      const float d = dy[row * out + o];
      for (size_t i = 0; i < in; ++i)
        dx[row * in + i] += d * weight[o * in + i];
    }
  }
  return dx;
}

inline void relu(Floats x) {
  for (float& value : x)
    value = std::max(value, 0.0F);
}

inline void relu_backward(ConstFloats y, Floats dy) {
  for (size_t i = 0; i < dy.size(); ++i) {
    if (y[i] <= 0) dy[i] = 0;
  }
}

// The cross entropy of softmax(logits), summed over the rows and divided by `batch`; the logits
// become the gradient.
inline double cross_entropy(Floats logits, std::span<const int> labels, size_t batch) {
  const size_t classes = logits.size() / labels.size();
  double loss = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const Floats scores = logits.subspan(row * classes, classes);
    const float largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const float score : scores)
      sum += std::exp(score - largest);
    const auto label = static_cast<size_t>(labels[row]);
    loss += std::log(sum) - (scores[label] - largest);
    for (size_t i = 0; i < classes; ++i) {
      const double share = std::exp(scores[i] - largest) / sum - (i == label ? 1 : 0);
      scores[i] = static_cast<float>(share / static_cast<double>(batch));
    }
  }
  return loss / static_cast<double>(batch);
}

// The share of rows whose largest score is the label's.
inline double accuracy(ConstFloats logits, std::span<const int> labels) {
  const size_t classes = logits.size() / labels.size();
  size_t right = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const ConstFloats scores = logits.subspan(row * classes, classes);
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (best == labels[row]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

// Stochastic gradient descent with momentum, PyTorch's formula.
struct Sgd {
  float rate = 0.1F;
  float momentum = 0.9F;
  void step(Floats values, ConstFloats gradient, Floats velocity) const {
    for (size_t i = 0; i < values.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      values[i] -= rate * velocity[i];
    }
  }
};

}  // namespace mlp
