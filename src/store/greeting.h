// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "store/connection.h"
#include "store/wire.h"

namespace muster {

// A connection to a store's server, and how it wants to be spoken to.
struct Greeted {
  Connection connection;
  Dialect dialect;
};

// Connects and greets, once. A server that closes the connection instead of answering may be one of
// PyTorch 1.13, which does not know the greeting: it is asked in its own way.
Result<Greeted> greet(const std::string& host, int port, Deadline deadline);

}  // namespace muster
