// SPDX-License-Identifier: Apache-2.0
// What it costs a worker to tell its launcher how it goes: nanoseconds per call of
// report_progress(), report_values() with two names, heartbeat(), and of an operation's begin() and
// end() in the ring of a communicator, all in one thread, the median of several rounds. The page is
// private memory here; shared memory costs the same once it has been touched.
#include <muster/comm/record.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "nccl/report/page_writer.h"

namespace {

using namespace muster::comm;  // NOLINT(google-build-using-namespace): a program of ours

constexpr size_t kRounds = 9;

template <typename Call>
void measure(const char* name, int calls, Call call) {
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; i++)
      call(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    round = took.count() / calls;
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("%-34s %8.1f ns\n", name, rounds[kRounds / 2]);
}

}  // namespace

int main(int argc, char**) {
  const int calls = argc > 1 ? 1000 : 300'000;  // with any argument: only whether it runs
  measure("the clock alone", calls,
          [](int) { [[maybe_unused]] const volatile auto now = std::chrono::steady_clock::now(); });
  measure("report_progress", calls, [](int i) { report_progress({i, 1'000'000, 0.5}); });
  measure("report_values, two names", calls, [](int i) {
    report_values({{"learning_rate", 1e-3}, {"accuracy", i}});
  });
  measure("heartbeat", calls, [](int) { heartbeat(); });
  detail::PageBlock block({.id = 1, .name = "world"});
  detail::Operation operation;
  operation.kind = detail::OpKind::kAllReduce;
  measure("an operation's begin and end", calls,
          [&](int) { block.end(block.begin(operation), true); });
  return EXIT_SUCCESS;
}
