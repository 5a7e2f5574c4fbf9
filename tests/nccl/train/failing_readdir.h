// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster::train_test {

// While it lives, reading a folder fails behind the first name that begins so, as it may on a
// network file system.
class FailingReaddir {
 public:
  explicit FailingReaddir(const std::string& after);
  FailingReaddir(const FailingReaddir&) = delete;
  FailingReaddir& operator=(const FailingReaddir&) = delete;
  ~FailingReaddir();
};

}  // namespace muster::train_test
