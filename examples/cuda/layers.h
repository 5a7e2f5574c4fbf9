// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <parallel_for.h>

#include <cmath>
#include <cstddef>

// mlp/layers.h on a stream, in the device's memory: what has `rows` rows of `in` numbers goes in,
// `out` come out of each.
namespace device {

// y = x weight^T + bias, and ReLU if asked.
inline void linear(cudaStream_t stream, const float* x, const float* weight, const float* bias,
                   float* y, size_t rows, size_t in, size_t out, bool relu) {
  parallel_for(stream, rows * out, [=] __device__(size_t i) {
    float sum = bias[i % out];
    for (size_t k = 0; k < in; ++k)
      sum += x[i / out * in + k] * weight[i % out * in + k];
    y[i] = relu && sum < 0 ? 0 : sum;
  });
}

// Adds the gradients by weight and bias, from dy, the loss' by y.
inline void linear_gradients(cudaStream_t stream, const float* x, const float* dy, float* dweight,
                             float* dbias, size_t rows, size_t in, size_t out) {
  parallel_for(stream, out * in, [=] __device__(size_t i) {
    for (size_t r = 0; r < rows; ++r)
      dweight[i] += dy[r * out + i / in] * x[r * in + i % in];
  });
  parallel_for(stream, out, [=] __device__(size_t i) {
    for (size_t r = 0; r < rows; ++r)
      dbias[i] += dy[r * out + i];
  });
}

// The gradient by x, which ReLU has made: none where it is not above 0.
inline void linear_backward(cudaStream_t stream, const float* x, const float* dy,
                            const float* weight, float* dx, size_t rows, size_t in, size_t out) {
  parallel_for(stream, rows * in, [=] __device__(size_t i) {
    float sum = 0;
    for (size_t o = 0; o < out; ++o)
      sum += dy[i / in * out + o] * weight[o * in + i % in];
    dx[i] = x[i] > 0 ? sum : 0;
  });
}

// Each row's share of the mean cross entropy; the scores become its gradient.
inline void cross_entropy(cudaStream_t stream, float* scores, const int* labels, float* loss,
                          size_t rows, size_t classes) {
  parallel_for(stream, rows, [=] __device__(size_t r) {
    float* row = scores + r * classes;
    float largest = row[0];
    float sum = 0;
    for (size_t i = 1; i < classes; ++i)
      largest = row[i] > largest ? row[i] : largest;
    for (size_t i = 0; i < classes; ++i)
      sum += expf(row[i] - largest);
    const auto label = static_cast<size_t>(labels[r]);
    loss[r] = (logf(sum) - (row[label] - largest)) / static_cast<float>(rows);
    for (size_t i = 0; i < classes; ++i) {
      const float share = expf(row[i] - largest) / sum - (i == label ? 1.0F : 0.0F);
      row[i] = share / static_cast<float>(rows);
    }
  });
}

// Stochastic gradient descent with momentum 0.9, as mlp::Sgd.
inline void descend(cudaStream_t stream, float* values, const float* gradient, float* velocity,
                    size_t count, float rate) {
  parallel_for(stream, count, [=] __device__(size_t i) {
    velocity[i] = 0.9F * velocity[i] + gradient[i];
    values[i] -= rate * velocity[i];
  });
}

}  // namespace device
