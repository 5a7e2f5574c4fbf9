// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/temp_tree.h"
#include "supervisor/cli/machine.h"
#include "supervisor/cli/parse.h"
#include "supervisor/cli/plan.h"

namespace muster {

// A machine of our own making and a PATH with a python3 in it, for plans made from command lines.
struct PlanFixture {
  using Strings = std::vector<std::string>;

  TempTree tree;
  Machine machine;
  Environment environment;
  std::string python;

  PlanFixture() {
    python = tree.program("bin/python3",
                          "\x7f"
                          "ELF");
    environment = {"PATH=" + tree.path("bin"), "HOME=/home/someone"};
    machine.host = "node-a";
    machine.sys_root = tree.path("sys");
    for (int cpu = 0; cpu < 8; ++cpu)
      machine.allowed_cpus.push_back(cpu);
    set_gpus(0);
    machine.xpus = [] { return DeviceList{{}, "sysfs", "no XPU in this test"}; };
  }

  void set_gpus(int count) {
    DeviceList list{{}, "NVML", "no GPU in this test"};
    for (int i = 0; i < count; ++i) {
      list.devices.push_back(
          {"0000:1" + std::to_string(i) + ":00.0", "GPU-" + std::to_string(i) + "abc"});
    }
    machine.nvidia = [list] { return list; };
  }

  Options options(Strings words) const {
    words.insert(words.begin(), "muster");
    Parsed parsed = parse(words, environment);
    if (EarlyExit* exit = std::get_if<EarlyExit>(&parsed)) FAIL(exit->err);
    return std::get<Options>(parsed);
  }

  LaunchPlan plan(Strings words) const {
    Result<LaunchPlan> made = make_plan(options(std::move(words)), machine, environment);
    if (!made) FAIL(made.error().message);
    return *made;
  }

  Error error(Strings words) const {
    Result<LaunchPlan> made = make_plan(options(std::move(words)), machine, environment);
    REQUIRE(!made);
    CHECK(made.error().message.starts_with("muster: "));
    CHECK(made.error().message.ends_with("\n"));
    return made.error();
  }
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines) {
    if (has(line, part)) return true;
  }
  return false;
}

// What the workers of `plan` are told when they are all there are.
inline Assignment assignment_of(const LaunchPlan& plan) {
  Assignment assignment;
  assignment.world_size = assignment.role_world_size = static_cast<int>(plan.workers.size());
  assignment.master_addr = plan.master_addr;
  assignment.master_port = 1234;
  return assignment;
}

// A variable of one worker's whole environment in an attempt, "<unset>" if it has none.
inline std::string variable(const LaunchPlan& plan, size_t rank, const std::string& name,
                            const std::optional<Assignment>& assignment = std::nullopt,
                            const AttemptFiles& files = {"/logs/error.json", "", ""}) {
  Environment whole =
      environment_for(plan, plan.workers[rank], assignment.value_or(assignment_of(plan)), files);
  return lookup(whole, name).value_or("<unset>");
}

}  // namespace muster
