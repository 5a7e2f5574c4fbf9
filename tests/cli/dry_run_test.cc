// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/dry_run.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"
#include "supervisor/cli/shell_quoted.h"

namespace muster {

TEST_CASE("words are quoted for a shell only if they have to be") {
  CHECK(shell_quoted("a-b/c.py") == "a-b/c.py");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's $x") == "'it'\\''s $x'");
}

TEST_CASE_FIXTURE(PlanFixture, "a dry run shows command, environment, CPUs and logs per worker") {
  LaunchPlan made = plan({"--nproc-per-node", "2", "--rdzv-id", "a/b", "--log-dir", "L", "--role",
                          "my role", "x.py", "two words", "${local_rank}"});
  made.workers[1].cpus = {0, 1, 2, 5};
  made.workers[1].cpus_why = "a reason";
  std::string text = dry_run_text(made);
  INFO(text);
  CHECK(has(text, "run a/b on node-a, 2 workers\n"));
  CHECK(has(text, "store at 127.0.0.1, any free port, hosted by muster\n"));
  CHECK(has(text, "command  " + python + " -u x.py 'two words' 1\n"));
  CHECK(has(text, "ROLE_NAME='my role'\n"));
  CHECK(has(text, "MASTER_PORT='<free port>'\n"));
  CHECK(has(text, "OMP_NUM_THREADS=1\n"));
  CHECK(!has(text, "HOME="));
  CHECK(has(text, "cpus     not bound\n"));
  CHECK(has(text, "cpus     0-2,5 (a reason)\n"));
  CHECK(has(text, "L/a_b_XXXXXXXX/attempt_0/1/stderr.log\n"));
  CHECK(has(text, "TORCHELASTIC_ERROR_FILE=L/a_b_XXXXXXXX/attempt_0/0/error.json\n"));
  CHECK(has(text, "note: OMP_NUM_THREADS=1"));
}

TEST_CASE_FIXTURE(PlanFixture, "a dry run without logs names no files") {
  std::string text = dry_run_text(plan({"--log-dir", "/dev/null", "x.py"}));
  CHECK(has(text, "logs     none"));
  CHECK(has(text, "TORCHELASTIC_ERROR_FILE=''"));
  CHECK(!has(text, "stdout.log"));
}

}  // namespace muster
