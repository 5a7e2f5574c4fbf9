// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/probe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "logs/temp_dir.h"
#include "stacks/started_worker.h"

using namespace muster;

namespace {

struct ProbeTest {
  TempDir dir;
  std::vector<std::unique_ptr<testing::StartedWorker>> workers;
  std::vector<std::string> lines;

  std::vector<std::string> run(const std::string& folder) {
    ProbeOrder order;
    for (int rank : {0, 1}) {
      workers.push_back(
          std::make_unique<testing::StartedWorker>(std::vector<std::string>{"/bin/sleep", "100"}));
      order.targets.push_back({rank, workers.back()->pid});
    }
    order.folder = folder;
    order.host = "node-a";
    order.why = "asked";
    run_probe(order, [this](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }
};

}  // namespace

TEST_CASE_FIXTURE(ProbeTest, "what all ranks do is told before anything is written") {
  run(dir.path + "/stacks_0");
  const auto written = std::find(lines.begin(), lines.end(), "W");
  REQUIRE(written != lines.end());
  for (const char* rank : {"R 0 ", "R 1 "}) {
    CHECK(std::any_of(lines.begin(), written,
                      [&](const std::string& line) { return line.starts_with(rank); }));
  }
}

TEST_CASE_FIXTURE(ProbeTest, "a folder that cannot be made is told once") {
  run(dir.path + "/no/such/stacks_0");
  ProbeAnswer answer;
  for (const std::string& line : lines)
    answer.take(line);
  CHECK_FALSE(answer.wrote);
  CHECK(answer.activity.size() == 2);
  REQUIRE(answer.troubles.size() == 1);
  CHECK(answer.troubles[0].find("No such file or directory") != std::string::npos);
}
