// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/look.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>

#include <chrono>
#include <thread>
#include <utility>

#include "diagnosis/run_program.h"
#include "loop/unique_fd.h"
#include "skip.h"
#include "supervisor/evidence/surroundings.h"

namespace muster {

namespace {

Evidence dead(int pid, int wait_status) {
  Evidence evidence;
  evidence.pid = pid;
  evidence.wait_status = wait_status;
  return evidence;
}

std::string silent_folder(Look& look) {
  std::vector<Evidence> all = {dead(7, 1 << 8)};
  look.add_to(all);
  return all[0].silent_folder;
}

bool named(Look& look, const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (silent_folder(look) != folder) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A file system whose server has it mounted and never answers.
struct SilentDisk {
  TestFolder folder;
  UniqueFd server;
  bool mounted = false;
  SilentDisk() { mount_again(); }
  ~SilentDisk() { answer(); }
  const std::string& path() const { return folder.path(); }
  void mount_again() {
    server.reset(open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options =
        "fd=" + std::to_string(server.get()) + ",rootmode=40000,user_id=0,group_id=0";
    mounted = server && mount("silent", path().c_str(), "fuse", 0, options.c_str()) == 0;
  }
  // Who waits gets an error.
  void answer() {
    server.reset();
    if (std::exchange(mounted, false)) umount2(path().c_str(), MNT_DETACH);
  }
};

}  // namespace

TEST_CASE("a look that hangs names the folder that does not answer, and no other") {
  SilentDisk silent;
  if (!silent.mounted) return say_skipped("no silent file system can be mounted");
  Look look({nullptr, {{"/", ""}, {silent.path(), "HOME"}, {"/proc", ""}}, "/", {}});
  CHECK(silent_folder(look) == "");  // nobody has asked yet
  std::thread asking([&look] { look.run(); });
  CHECK(named(look, silent.path() + " (HOME)"));
  silent.answer();
  asking.join();
  CHECK(silent_folder(look) == "");
}

TEST_CASE("a look that came back tells of no silent folder") {
  Look look({nullptr, {{"/", ""}}, "/", {}});
  look.run();
  std::vector<Evidence> all = {dead(7, 1 << 8)};
  look.add_to(all);
  CHECK(all[0].silent_folder == "");
  CHECK(all[0].core == "");
}

TEST_CASE("while one look hangs, the next ones ask no file system") {
  SilentDisk silent;
  if (!silent.mounted) return say_skipped("no silent file system can be mounted");
  Surroundings surroundings(std::vector<Folder>{{silent.path(), "HOME"}});
  surroundings.begin_attempt();
  auto hanging = surroundings.begin_look({});
  std::thread asking([&hanging] { hanging->run(); });
  CHECK(named(*hanging, silent.path() + " (HOME)"));
  for (int i = 0; i < 3; ++i) {
    auto next = surroundings.begin_look({});
    next->run();  // comes back
    CHECK(silent_folder(*next) == "");
  }
  silent.answer();
  asking.join();
  hanging.reset();

  silent.mount_again();
  REQUIRE(silent.mounted);
  hanging = surroundings.begin_look({});
  std::thread again([&hanging] { hanging->run(); });
  CHECK(named(*hanging, silent.path() + " (HOME)"));
  silent.answer();
  again.join();
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
