// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/buffer.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::train {

// A tensor by its name: a parameter of a model, a moment of an optimiser. It owns nothing; `data`
// is the program's memory, dense and row by row, and its count the product of `shape` ({}: one
// number). Names are unique within a call.
struct NamedTensor {
  NamedTensor() = default;
  NamedTensor(std::string tensor_name, std::vector<int64_t> tensor_shape, comm::Buffer memory)
      : name(std::move(tensor_name)), shape(std::move(tensor_shape)), data(memory) {}

  std::string name;
  std::vector<int64_t> shape;
  comm::Buffer data;
};

}  // namespace muster::train
