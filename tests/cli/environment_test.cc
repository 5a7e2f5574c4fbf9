// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/environment.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"

namespace muster {

TEST_SUITE_BEGIN("environment");

TEST_CASE("a variable is set in place, once, and empty is not unset") {
  Environment environment = {"A=1", "AB=2", "A=3", "EMPTY=", "odd line"};
  CHECK(lookup(environment, "A") == "1");
  CHECK(lookup(environment, "EMPTY") == "");
  CHECK(!lookup(environment, "B"));
  set_variable(environment, "A", "9");
  set_variable(environment, "NEW", "n");
  CHECK(environment == Environment{"A=9", "AB=2", "EMPTY=", "odd line", "NEW=n"});
}

TEST_CASE_FIXTURE(PlanFixture, "every variable of the launcher's contract is there") {
  LaunchPlan made =
      plan({"--nproc-per-node", "2", "--role", "r", "--max-restarts", "3", "--rdzv-id", "j", "x"});
  Assignment facts = assignment_of(made);
  facts.restart_count = 2;
  facts.master_port = 4711;
  auto value = [&](const std::string& name) { return variable(made, 1, name, facts); };
  CHECK(value("LOCAL_RANK") == "1");
  CHECK(value("RANK") == "1");
  CHECK(value("WORLD_SIZE") == "2");
  CHECK(value("LOCAL_WORLD_SIZE") == "2");
  CHECK(value("GROUP_RANK") == "0");
  CHECK(value("GROUP_WORLD_SIZE") == "1");
  CHECK(value("ROLE_RANK") == "1");
  CHECK(value("ROLE_WORLD_SIZE") == "2");
  CHECK(value("ROLE_NAME") == "r");
  CHECK(value("MASTER_ADDR") == "127.0.0.1");
  CHECK(value("MASTER_PORT") == "4711");
  CHECK(value("TORCHELASTIC_RESTART_COUNT") == "2");
  CHECK(value("TORCHELASTIC_MAX_RESTARTS") == "3");
  CHECK(value("TORCHELASTIC_RUN_ID") == "j");
  CHECK(value("TORCHELASTIC_USE_AGENT_STORE") == "True");
  CHECK(value("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "1");
  CHECK(value("TORCHELASTIC_ERROR_FILE") == "/logs/error.json");
  CHECK(value("TORCHELASTIC_SIGNALS_TO_HANDLE") == "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  CHECK(value("HOME") == "/home/someone");
  CHECK(value("CUDA_VISIBLE_DEVICES") == "<unset>");
  CHECK(value("TORCHELASTIC_TIMER_FILE") == "<unset>");
}

TEST_CASE_FIXTURE(PlanFixture, "a node of several gets its ranks from the assignment") {
  LaunchPlan made = plan({"--nproc-per-node", "2", "x"});
  Assignment told;
  told.node = 3;
  told.node_count = 5;
  told.first_rank = 7;
  told.world_size = 11;
  told.role_first_rank = 4;
  told.role_world_size = 6;
  told.master_addr = "node-a";
  auto value = [&](const std::string& name) { return variable(made, 1, name, told); };
  CHECK(value("RANK") == "8");
  CHECK(value("LOCAL_RANK") == "1");
  CHECK(value("LOCAL_WORLD_SIZE") == "2");
  CHECK(value("WORLD_SIZE") == "11");
  CHECK(value("GROUP_RANK") == "3");
  CHECK(value("GROUP_WORLD_SIZE") == "5");
  CHECK(value("ROLE_RANK") == "5");
  CHECK(value("ROLE_WORLD_SIZE") == "6");
  CHECK(value("MASTER_ADDR") == "node-a");
}

TEST_CASE_FIXTURE(PlanFixture, "a watchdog's pipe replaces one that is inherited") {
  environment.emplace_back("TORCHELASTIC_TIMER_FILE=/outer");
  LaunchPlan made = plan({"x"});
  CHECK(variable(made, 0, "TORCHELASTIC_TIMER_FILE") == "/outer");
  CHECK(variable(made, 0, "TORCHELASTIC_TIMER_FILE", std::nullopt, {"", "/inner", "", ""}) ==
        "/inner");
}

TEST_CASE_FIXTURE(PlanFixture, "a Python worker tells where it is when it is aborted") {
  CHECK(variable(plan({"x"}), 0, "PYTHONFAULTHANDLER") == "1");
  environment.emplace_back("PYTHONFAULTHANDLER=");
  CHECK(variable(plan({"x"}), 0, "PYTHONFAULTHANDLER") == "");
}

TEST_CASE_FIXTURE(PlanFixture, "the flight recorder writes beside the logs, unless told where") {
  const std::string name = "TORCH_FR_DUMP_TEMP_FILE";
  const std::string older = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
  const AttemptFiles files{"", "", "", "/logs/0/flight_recorder_"};
  CHECK(variable(plan({"x"}), 0, name) == "<unset>");
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "/logs/0/flight_recorder_");
  CHECK(variable(plan({"x"}), 0, older, std::nullopt, files) == "/logs/0/flight_recorder_");
  environment.emplace_back(older + "=/mine_");
  CHECK(variable(plan({"x"}), 0, older, std::nullopt, files) == "/mine_");
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "<unset>");
}

TEST_CASE_FIXTURE(PlanFixture, "it makes a pipe there, where it can, unless told otherwise") {
  const std::string name = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
  AttemptFiles files{"", "", "", "/logs/0/flight_recorder_"};
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "<unset>");
  files.recording_pipe = true;
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "/logs/0/flight_recorder_");
  const std::string newer = "TORCH_FR_DEBUG_INFO_PIPE_FILE";
  CHECK(variable(plan({"x"}), 0, newer, std::nullopt, files) == "/logs/0/flight_recorder_");
  environment.emplace_back(name + "=/mine_");
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "/mine_");
  CHECK(variable(plan({"x"}), 0, newer, std::nullopt, files) == "<unset>");
  environment.back() = "TORCH_FR_DUMP_TEMP_FILE=/mine_";
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, files) == "<unset>");
}

TEST_CASE_FIXTURE(PlanFixture, "a worker's page is its own, or it has none") {
  const std::string name = "MUSTER_WORKER_PAGE";
  CHECK(variable(plan({"x"}), 0, name) == "<unset>");
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, {"", "", "/proc/7/fd/9", ""}) ==
        "/proc/7/fd/9");
  environment.emplace_back(name + "=/proc/1/fd/3");  // of an outer muster's worker, which we are
  CHECK(variable(plan({"x"}), 0, name) == "");
}

TEST_CASE_FIXTURE(PlanFixture, "so is the file for its progress") {
  const std::string name = "MUSTER_PROGRESS";
  CHECK(variable(plan({"x"}), 0, name, std::nullopt, {"", "", "", "", "/proc/7/fd/8"}) ==
        "/proc/7/fd/8");
  // Whoever writes into it without a question must not fail.
  CHECK(variable(plan({"x"}), 0, name) == "/dev/null");
  environment.emplace_back(name + "=/proc/1/fd/3");
  CHECK(variable(plan({"x"}), 0, name) == "/dev/null");
}

TEST_CASE_FIXTURE(PlanFixture,
                  "what the launcher's environment says about ranks is replaced, once") {
  environment.insert(environment.begin(),
                     {"RANK=9", "MASTER_PORT=1", "TORCHELASTIC_ERROR_FILE=/f",
                      "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", "CUDA_VISIBLE_DEVICES=", "RANK=8"});
  LaunchPlan made = plan({"x"});
  CHECK(variable(made, 0, "RANK") == "0");
  CHECK(variable(made, 0, "MASTER_PORT") == "1234");
  CHECK(variable(made, 0, "TORCHELASTIC_ERROR_FILE", std::nullopt, {"", "", "", ""}) == "");
  CHECK(variable(made, 0, "TORCH_NCCL_ASYNC_ERROR_HANDLING") == "3");
  CHECK(variable(made, 0, "CUDA_VISIBLE_DEVICES") == "");
  int ranks = 0;
  for (const std::string& line : environment_for(made, made.workers[0], assignment_of(made), {})) {
    ranks += line.starts_with("RANK=") ? 1 : 0;
  }
  CHECK(ranks == 1);
}

TEST_CASE_FIXTURE(PlanFixture, "OMP_NUM_THREADS is 1 for several workers unless it is set") {
  CHECK(variable(plan({"x"}), 0, "OMP_NUM_THREADS") == "<unset>");
  LaunchPlan made = plan({"--nproc-per-node", "2", "x"});
  CHECK(variable(made, 1, "OMP_NUM_THREADS") == "1");
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0] == "OMP_NUM_THREADS=1 for each worker; --omp-threads auto would make it 4");
  CHECK(plan({"--nproc-per-node", "8", "x"}).notes[0] == "OMP_NUM_THREADS=1 for each worker");
  environment.emplace_back("OMP_NUM_THREADS=");
  made = plan({"--nproc-per-node", "2", "x"});
  CHECK(variable(made, 1, "OMP_NUM_THREADS") == "");
  CHECK(made.notes.empty());
}

TEST_CASE_FIXTURE(PlanFixture, "--omp-threads sets a number or divides the cores") {
  environment.emplace_back("OMP_NUM_THREADS=7");
  CHECK(variable(plan({"--omp-threads", "3", "x"}), 0, "OMP_NUM_THREADS") == "3");
  Strings line = {"--omp-threads", "auto", "--nproc-per-node", "2", "x"};
  CHECK(variable(plan(line), 0, "OMP_NUM_THREADS") == "4");
  // Two threads a core: eight CPUs are four cores.
  for (int cpu = 0; cpu < 8; ++cpu) {
    std::string first = std::to_string(cpu % 4);
    tree.file("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
              first + "," + std::to_string(cpu % 4 + 4) + "\n");
  }
  CHECK(variable(plan(line), 0, "OMP_NUM_THREADS") == "2");
  line[3] = "64";
  CHECK(variable(plan(line), 63, "OMP_NUM_THREADS") == "1");
}

TEST_SUITE_END();

}  // namespace muster
