// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/comm/record.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "nccl/report/own_page.h"

namespace muster::comm {
namespace {

worker_page::ProgressBlock& progress() {
  return detail::own_page().progress;
}

double value_of(const std::string& name) {
  for (uint32_t i = 0; i < progress().values; i++) {
    if (name == progress().named[i].name) return progress().named[i].value;
  }
  return -1;
}

}  // namespace

TEST_CASE("a report is a whole: what it does not say is not known") {
  const int64_t before = detail::monotonic_ns();
  report_progress({12, 100, 0.25});
  CHECK(progress().step == 12);
  CHECK(progress().total == 100);
  CHECK(progress().loss == 0.25);
  CHECK(progress().reported_ns >= before);
  CHECK(progress().heartbeat_ns == progress().reported_ns);
  CHECK(progress().version % 2 == 0);
  report_progress({13});
  CHECK(progress().step == 13);
  CHECK(progress().total == -1);
  CHECK(std::isnan(progress().loss));
}

TEST_CASE("a heartbeat is no step") {
  report_progress({1});
  const int64_t reported = progress().reported_ns;
  heartbeat();
  CHECK(progress().reported_ns == reported);
  CHECK(progress().heartbeat_ns >= reported);
}

TEST_CASE("named numbers stay until they are told again") {
  report_values({{"lr", 0.5}, {"accuracy", 0.75}});
  report_values({{"lr", 0.25}});
  report_progress({2});
  CHECK(value_of("lr") == 0.25);
  CHECK(value_of("accuracy") == 0.75);
}

TEST_CASE("names and numbers beyond the limits are left out") {
  const std::string longest(kMaxValueName, 'n');
  report_values({{longest + "more", 7}});
  CHECK(value_of(longest) == 7);
  for (int i = 0; i < 2 * kMaxValues; i++)
    report_values({{"value " + std::to_string(i), i}});
  CHECK(progress().values == kMaxValues);
  CHECK(value_of(longest) == 7);
  CHECK(value_of("value " + std::to_string(2 * kMaxValues - 1)) == -1);
  report_values({{longest, 8}});
  CHECK(value_of(longest) == 8);
}

TEST_CASE("reports of several threads never mix") {
  std::atomic<bool> done{false};
  std::atomic<int64_t> mixed{0};
  std::atomic<int64_t> whole{0};
  const auto report = [&](int64_t from) {
    for (int64_t i = 0; i < 20'000; i++)
      report_progress({from + i, 2 * (from + i), from + i});
  };
  report_progress({1, 2, 1});
  std::thread reader([&] {
    do {
      const uint64_t version = progress().version.load(std::memory_order_acquire);
      const int64_t step = progress().step.load(std::memory_order_acquire);
      const int64_t total = progress().total.load(std::memory_order_acquire);
      const double loss = progress().loss.load(std::memory_order_acquire);
      if (version % 2 != 0 || version != progress().version) continue;
      const bool good = total == 2 * step && loss == static_cast<double>(step);
      good ? whole++ : mixed++;
    } while (!done || whole + mixed == 0);  // where it gets no turn before, the last report
  });
  std::vector<std::thread> writers;
  for (int64_t i = 0; i < 3; i++)
    writers.emplace_back(report, i * 1'000'000);
  for (std::thread& writer : writers)
    writer.join();
  done = true;
  reader.join();
  CHECK(mixed == 0);
  CHECK(whole > 0);
}

}  // namespace muster::comm
