// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/data_type.h>

#include "nccl/core/float_bits.h"

namespace muster::comm {

Float16 Float16::from(float value) {
  return {detail::half_from_float(value)};
}
float Float16::to_float() const {
  return detail::half_to_float(bits);
}

Bfloat16 Bfloat16::from(float value) {
  return {detail::bfloat_from_float(value)};
}
float Bfloat16::to_float() const {
  return detail::bfloat_to_float(bits);
}

}  // namespace muster::comm
