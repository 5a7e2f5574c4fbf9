// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm.h>

#include <functional>

namespace muster::train_test {

// What one rank does. An exception fails the test that runs it.
using RankBody = std::function<void(comm::World&, comm::Communicator&)>;

// A job of `ranks` threads on Gloo, each a member of its own; returns when all have ended.
void run_ranks(int ranks, const RankBody& body, comm::CommunicatorOptions options = {});

}  // namespace muster::train_test
