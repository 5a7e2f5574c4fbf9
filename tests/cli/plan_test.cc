// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/plan.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"
#include "supervisor/cli/dry_run.h"
#include "supervisor/cli/store_place.h"

namespace muster {

TEST_SUITE_BEGIN("plan");

TEST_CASE_FIXTURE(PlanFixture, "a bare job of one node meets on loopback at any free port") {
  LaunchPlan made = plan({"x.py"});
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(made.store_bind == "127.0.0.1");
  CHECK(made.master_port == 0);
  CHECK(made.agent_store);
  CHECK(made.run_id.size() == 36);
  CHECK(made.run_id[14] == '4');
  CHECK(made.run_id != plan({"x.py"}).run_id);
  CHECK(made.warnings.empty());
  CHECK(made.workers.size() == 1);
}

TEST_CASE_FIXTURE(PlanFixture, "a run id that is given is used, a master address alone is not") {
  LaunchPlan made = plan({"--rdzv-id", "mine", "--master-addr", "10.9.8.7", "x.py"});
  CHECK(made.run_id == "mine");
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(has_line(made.warnings, "--master-addr has no effect"));
}

TEST_CASE_FIXTURE(PlanFixture, "a master port makes the job static") {
  LaunchPlan made = plan({"--master-port", "29611", "x.py"});
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(made.master_port == 29611);
  CHECK(made.run_id == "none");
  made = plan({"--master-port", "29611", "--master-addr", "10.9.8.7", "x.py"});
  CHECK(made.master_addr == "10.9.8.7");
  CHECK(made.store_bind == "10.9.8.7");
  CHECK(made.warnings.empty());
}

TEST_CASE_FIXTURE(PlanFixture, "standalone beats what else is said about meeting") {
  LaunchPlan made = plan({"--standalone", "--master-port", "1234", "--rdzv-id", "x", "--local-addr",
                          "127.0.0.1", "x.py"});
  CHECK(made.master_port == 0);
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(made.run_id.size() == 36);
  CHECK(has_line(made.warnings, "--master-port has no effect"));
  CHECK(has_line(made.warnings, "--rdzv-id has no effect"));
}

TEST_CASE_FIXTURE(PlanFixture, "a static endpoint is where the store listens") {
  LaunchPlan made = plan({"--rdzv-endpoint", "[::1]:29512", "--master-port", "1", "x.py"});
  CHECK(made.master_addr == "::1");
  CHECK(made.store_bind == "::1");
  CHECK(made.master_port == 29512);
  CHECK(has_line(made.warnings, "--master-port has no effect"));
  CHECK(plan({"--rdzv-endpoint", "localhost:1", "x"}).store_bind == "127.0.0.1");
  CHECK(plan({"--rdzv-endpoint", "localhost:1", "x"}).master_addr == "localhost");
}

TEST_CASE_FIXTURE(PlanFixture,
                  "c10d on one node needs no endpoint and ignores the static options") {
  LaunchPlan made = plan({"--rdzv-backend", "c10d", "--rdzv-endpoint", "node-b:29400",
                          "--node-rank", "1", "--rdzv-id", "j", "x.py"});
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(made.master_port == 0);
  CHECK(made.run_id == "j");
  CHECK(has_line(made.warnings, "--node-rank has no effect"));
  CHECK(has_line(made.warnings, "--rdzv-endpoint has no effect"));
}

TEST_CASE("a store listens only where its workers look for it, and no name is looked up") {
  CHECK(bind_address_for("127.0.0.1") == "127.0.0.1");
  CHECK(bind_address_for("127.0.0.2") == "127.0.0.2");
  CHECK(bind_address_for("localhost") == "127.0.0.1");
  CHECK(bind_address_for("::1") == "::1");
  CHECK(bind_address_for("fe80::1%eth0") == "fe80::1%eth0");
  CHECK(bind_address_for("10.1.2.3") == "10.1.2.3");
  std::string everywhere = bind_address_for("no-such-host.invalid");
  CHECK((everywhere == "::" || everywhere == "0.0.0.0"));  // the latter without IPv6
}

TEST_CASE("a run id makes one folder whatever is in it") {
  CHECK(folder_name_for("a/b") == "a_b");
  CHECK(folder_name_for("..") == "_.");
  CHECK(folder_name_for("x\ny") == "x_y");
  CHECK(folder_name_for(std::string(5000, 'a')).size() == 128);
}

TEST_CASE_FIXTURE(PlanFixture, "one node at an etcd needs no etcd and no rank above 0") {
  LaunchPlan made = plan({"--rdzv-backend", "etcd", "--rdzv-endpoint", "a:1", "x.py"});
  CHECK(!made.rendezvous.several_nodes());
  CHECK(made.master_addr == "127.0.0.1");
  CHECK(has_line(made.warnings, "--rdzv-endpoint has no effect"));
  Error refused = error({"--master-port", "1", "--node-rank", "1", "x.py"});
  CHECK(refused.code == 2);
  CHECK(has(refused.message, "--node-rank 1: the job has one node"));
}

TEST_CASE_FIXTURE(PlanFixture, "several nodes know their port before they have met, no address") {
  LaunchPlan made = plan({"--nnodes", "2", "--master-addr", "node-b", "x.py"});
  CHECK(made.rendezvous.several_nodes());
  CHECK(made.rendezvous.meeting == Meeting::kStatic);
  CHECK(made.master_addr == "");
  CHECK(made.store_bind == "");
  CHECK(made.master_port == 29500);
  CHECK(made.run_id == "none");
  CHECK(made.warnings.empty());
}

TEST_CASE_FIXTURE(PlanFixture, "the token reaches the plan, never a worker, a line or a dry run") {
  const std::string secret = "s3cret-of-the-job";
  environment.emplace_back("MUSTER_TOKEN=" + secret);
  Strings line = {"--nnodes", "2", "--master-addr", "node-b", "x.py"};
  LaunchPlan made = plan(line);
  CHECK(made.rendezvous.token == secret);
  CHECK(variable(made, 0, "MUSTER_TOKEN") == "<unset>");
  CHECK(has(dry_run_text(made), "with a token"));
  CHECK(!has(dry_run_text(made), secret));
  for (const std::string& entry : environment_for(made, made.workers[0], assignment_of(made), {}))
    CHECK(!has(entry, secret));

  line.insert(line.begin(), {"--token-file", tree.file("token", "another-secret-of-it\n")});
  made = plan(line);
  CHECK(made.rendezvous.token == "another-secret-of-it");
  CHECK(has_line(made.warnings, "others can read the file"));
  line[1] = tree.file("empty", "\n");
  CHECK(has(error(line).message, "empty: the file is empty"));
  line[1] = tree.file("long", std::string(5000, 'a'));
  CHECK(has(error(line).message, "longer than 4096 bytes"));
  line[1] = tree.file("short", "fifteen-bytes..\n");
  CHECK(has(error(line).message, "15 bytes; fewer than 16 could be guessed"));
  CHECK(!has(error(line).message, "fifteen"));
  line[1] = tree.path("missing");
  CHECK(has(error(line).message, "missing: No such file"));
}

TEST_CASE_FIXTURE(PlanFixture, "a dry run of several nodes says where they meet and what is open") {
  std::string text = dry_run_text(plan({"--nnodes", "1:4", "--rdzv-backend", "c10d",
                                        "--rdzv-endpoint", "[fe80::1%eth0]:29411", "x.py"}));
  CHECK(has(text, "1 to 4 nodes meet at [fe80::1%eth0]:29411 (c10d)\n"));
  CHECK(has(text, "MASTER_PORT=29411\n"));
  CHECK(has(text, "WORLD_SIZE='<when the nodes have met>'"));
  CHECK(has(text, " RANK='<when the nodes have met>'"));
}

TEST_CASE_FIXTURE(PlanFixture, "a variable hands the store to the workers") {
  environment.emplace_back("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1");
  LaunchPlan made = plan({"x.py"});
  CHECK(!made.agent_store);
  CHECK(variable(made, 0, "TORCHELASTIC_USE_AGENT_STORE") == "False");
}

TEST_CASE_FIXTURE(PlanFixture, "the number of workers comes with a reason") {
  CHECK(plan({"--nproc-per-node", "3", "x"}).workers.size() == 3);
  CHECK(plan({"--nproc-per-node", "3", "x"}).nproc_why == "");
  CHECK(plan({"--nproc-per-node", "cpu", "x"}).workers.size() == 8);
  CHECK(plan({"--nproc-per-node", "auto", "x"}).nproc_why ==
        "no accelerator; 8 CPUs in the affinity mask");
  set_gpus(4);
  LaunchPlan made = plan({"--nproc-per-node", "gpu", "x"});
  CHECK(made.workers.size() == 4);
  CHECK(made.nproc_why == "4 GPUs (NVML)");
  CHECK(plan({"--nproc-per-node", "auto", "x"}).workers.size() == 4);
}

TEST_CASE_FIXTURE(PlanFixture, "cpu counts no more than the cgroup grants") {
  machine.cpu_share = 2.5;
  LaunchPlan made = plan({"--nproc-per-node", "cpu", "x"});
  CHECK(made.workers.size() == 2);
  CHECK(has(made.nproc_why, "8 CPUs in the affinity mask, of which the cgroup grants 2.5"));
  machine.cpu_share = 0.5;
  CHECK(plan({"--nproc-per-node", "cpu", "x"}).workers.size() == 1);
}

TEST_CASE_FIXTURE(PlanFixture,
                  "devices that are missing are a usage error that says what was tried") {
  Error refused = error({"--nproc-per-node", "gpu", "x"});
  CHECK(refused.code == 2);
  CHECK(has(refused.message, "no GPU in this test"));
  CHECK(has(error({"--nproc-per-node", "xpu", "x"}).message, "no XPU in this test"));
  set_gpus(2);
  environment.emplace_back("CUDA_VISIBLE_DEVICES=");
  CHECK(has(error({"--nproc-per-node", "gpu", "x"}).message, "hides the 2 GPUs"));
}

TEST_CASE_FIXTURE(PlanFixture, "xpu and auto count Intel's devices") {
  machine.xpus = [] { return DeviceList{{{}, {}}, "Level Zero", ""}; };
  CHECK(plan({"--nproc-per-node", "xpu", "x"}).nproc_why == "2 XPUs (Level Zero)");
  CHECK(plan({"--nproc-per-node", "auto", "x"}).workers.size() == 2);
}

TEST_CASE_FIXTURE(PlanFixture, "CUDA_VISIBLE_DEVICES narrows what is counted") {
  set_gpus(8);
  environment.emplace_back("CUDA_VISIBLE_DEVICES=5,7,1");
  LaunchPlan made = plan({"--nproc-per-node", "gpu", "x"});
  CHECK(made.workers.size() == 3);
  CHECK(has(made.nproc_why, "CUDA_VISIBLE_DEVICES=5,7,1"));
}

TEST_CASE_FIXTURE(PlanFixture, "--gpus chooses devices and the number of workers") {
  set_gpus(8);
  LaunchPlan made = plan({"--gpus", "2,4,7", "x"});
  CHECK(made.workers.size() == 3);
  CHECK(made.nproc_why == "3 GPUs named by --gpus");
  CHECK(variable(made, 2, "CUDA_VISIBLE_DEVICES") == "2,4,7");
  CHECK(plan({"--gpus", "2,4,7", "--nproc-per-node", "gpu", "x"}).workers.size() == 3);
  CHECK(plan({"--gpus", "2,4,7", "--nproc-per-node", "1", "x"}).workers.size() == 1);
  CHECK(has(error({"--gpus", "2,8", "x"}).message, "there is no GPU 8 among the 8 GPUs here"));
  environment.emplace_back("CUDA_VISIBLE_DEVICES=0");
  CHECK(has_line(plan({"--gpus", "2", "x"}).warnings, "--gpus replaces CUDA_VISIBLE_DEVICES=0"));
}

TEST_CASE_FIXTURE(PlanFixture, "a virtual local rank is 0 and sees its own device") {
  environment.emplace_back("CUDA_VISIBLE_DEVICES=5, 7");
  Strings line = {"--virtual-local-rank", "--nproc-per-node", "2", "x", "${local_rank}"};
  LaunchPlan made = plan(line);
  CHECK(variable(made, 0, "LOCAL_RANK") == "0");
  CHECK(variable(made, 1, "LOCAL_RANK") == "0");
  CHECK(variable(made, 1, "RANK") == "1");
  CHECK(variable(made, 0, "CUDA_VISIBLE_DEVICES") == "5");
  CHECK(variable(made, 1, "CUDA_VISIBLE_DEVICES") == "7");
  CHECK(made.workers[1].argv.back() == "1");
  environment.back() = "CUDA_VISIBLE_DEVICES=5";
  Error refused = error(line);
  CHECK(refused.code == 2);
  CHECK(has(refused.message, "no device for local rank 1"));
  environment.pop_back();
  CHECK(variable(plan(line), 1, "CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE_FIXTURE(PlanFixture, "options that change nothing are named, one line each") {
  auto warns = [this](Strings words, const std::string& part) {
    words.emplace_back("x.py");
    LaunchPlan made = plan(words);
    CAPTURE(part);
    CHECK(has_line(made.warnings, part));
    for (const std::string& line : made.warnings)
      CHECK(!has(line, "\n"));
  };
  warns({"--monitor-interval", "2"}, "--monitor-interval has no effect");
  warns({"--start-method", "fork"}, "--start-method has no effect");
  warns({"--rdzv-conf", "join_timeout=3"}, "--rdzv-conf has no effect");
  warns({"--rdzv-conf", "join_timout=3"}, "did you mean join_timeout?");
  warns({"--run-path", "--no-python"}, "--no-python has no effect");
  warns({"--restart-always"}, "--restart-always has no effect");
  warns({"--same-failure-limit", "2/5"}, "--same-failure-limit has no effect");
  warns({"--restart-backoff", "5"}, "--restart-backoff has no effect");
  warns({"--duplicate-stdout-filters", "a"}, "--duplicate-stdout-filters has no effect");
  warns({"--log-dir", "/dev/null", "-r", "3"}, "--redirects has no effect");
  warns({"--event-log-handler", "dynamic_rendezvous"}, "--event-log-handler has no effect");
  warns({"--tee", "9:3"}, "--tee names rank 9, but the ranks end at 0");
  warns({"--ranks-filter", "0-3"}, "--ranks-filter names rank 3");
  warns({"--stdin-rank", "1"}, "--stdin-rank names rank 1");
  warns({"--keep-runs", "3", "--log-dir", "d"}, "--keep-runs has no effect");
  warns({"--fold", "--console", "raw"}, "--fold has no effect");
  CHECK(plan({"-t", "1", "--duplicate-stdout-filters", "a", "x"}).warnings.empty());
  CHECK(plan({"--logs-specs", "default", "x"}).warnings.empty());
}

TEST_CASE_FIXTURE(PlanFixture, "an unknown signal is left out with a warning") {
  LaunchPlan made = plan({"--signals-to-handle", "SIGTERM, SIGFOO", "x"});
  CHECK(made.options.signals_to_handle == Strings{"SIGTERM"});
  CHECK(has_line(made.warnings, "there is no signal 'SIGFOO'"));
}

TEST_SUITE_END();

}  // namespace muster
