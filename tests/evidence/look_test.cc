// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/look.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "diagnosis/run_program.h"
#include "supervisor/evidence/surroundings.h"

namespace muster {

namespace {

Evidence dead(int pid, int wait_status) {
  Evidence evidence;
  evidence.pid = pid;
  evidence.wait_status = wait_status;
  return evidence;
}

}  // namespace

TEST_CASE("a look that has not come back names the folder that does not answer") {
  Look look({nullptr, {{"/nfs/home", "HOME"}, {"/tmp", ""}}, "/", {}});
  std::vector<Evidence> all = {dead(7, 1 << 8)};
  look.add_to(all);
  CHECK(all[0].silent_folder == "/nfs/home (HOME)");
}

TEST_CASE("a look that came back tells of no silent folder") {
  Look look({nullptr, {{"/", ""}}, "/", {}});
  look.run();
  std::vector<Evidence> all = {dead(7, 1 << 8)};
  look.add_to(all);
  CHECK(all[0].silent_folder == "");
  CHECK(all[0].core == "");
}

TEST_CASE("while one look hangs, the next asks no file system") {
  Surroundings surroundings(std::vector<Folder>{{"/", "HOME"}});
  surroundings.begin_attempt();
  std::vector<Evidence> all = {dead(7, 1 << 8)};
  auto hanging = surroundings.begin_look(all);
  auto next = surroundings.begin_look(all);
  next->add_to(all);
  CHECK(all[0].silent_folder == "");
  hanging->add_to(all);
  CHECK(all[0].silent_folder == "/ (HOME)");
  hanging.reset();
  next.reset();
  surroundings.begin_look(all)->add_to(all);
  CHECK(all[0].silent_folder == "/ (HOME)");
}

TEST_CASE("an attempt begins without the deaths of the one before") {
  Surroundings surroundings(std::vector<Folder>{});
  surroundings.begin_attempt();
  surroundings.note_death(7, SIGKILL);
  surroundings.begin_attempt();
  Evidence evidence = dead(7, SIGKILL);
  surroundings.fill(evidence);
  CHECK_FALSE(evidence.memory);
}

}  // namespace muster
