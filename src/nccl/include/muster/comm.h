// SPDX-License-Identifier: Apache-2.0
#pragma once

// The worker library of muster: join the job, communicate, say how it goes.
//
//   #include <muster/comm.h>
//   namespace mc = muster::comm;
//
//   int main() {
//     return mc::record([] {
//       mc::World world = mc::World::join().value();
//       mc::Communicator all = world.communicator(mc::Backend::kGloo).value();
//       std::vector<float> numbers(1000, float(world.rank()));
//       all.all_reduce(numbers).wait().value();
//       all.close().value();
//       return 0;
//     });
//   }

#include <muster/comm/communicator.h>
#include <muster/comm/record.h>
#include <muster/comm/world.h>
