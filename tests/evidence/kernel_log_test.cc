// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/kernel_log.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "skip.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

constexpr const char* kUsage = "memory: usage 524288kB, limit 524288kB, failcnt 33";
constexpr const char* kContext =
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/job,task_memcg=/job/step,task=python3,pid=4711,uid=0";
constexpr const char* kKill =
    "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:76668kB, UID:0";
constexpr const char* kSegfault =
    "python3[4712]: segfault at 8 ip 00005613ab14a564 sp 00007ffcca992c80 error 6 in libfoo.so[1]";
constexpr const char* kTrap =
    "traps: native[4713] trap invalid opcode ip:55572aa723db sp:7ffee8677fb0 error:0 in native[5]";
constexpr const char* kXid =
    "NVRM: Xid (PCI:0000:17:00): 79, pid='4714', name=python3, GPU has fallen off the bus.";

std::vector<KernelNote> notes_of(const std::vector<std::string>& lines) {
  KernelNotes notes;
  for (const std::string& line : lines)
    notes.add_line(line);
  return notes.take();
}

Evidence dead(int pid, int wait_status) {
  Evidence evidence;
  evidence.pid = pid;
  evidence.wait_status = wait_status;
  return evidence;
}

// A process that writes where nothing may be written: its pid and its end.
std::pair<int, int> crash() {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const int pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    signal(SIGSEGV, SIG_DFL);
    *static_cast<volatile int*>(page) = 1;
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  munmap(page, 4096);
  return {pid, status};
}

}  // namespace

TEST_CASE("the kernel's lines about processes and GPUs are understood") {
  const std::vector<KernelNote> notes =
      notes_of({"eth0: link up", kUsage, kContext, kKill, kSegfault, kTrap, kXid,
                "NVRM: Xid (PCI:0:1): 79"});
  REQUIRE(notes.size() == 5);
  CHECK(notes[0].kind == KernelNote::Kind::kOutOfMemory);
  CHECK(notes[0].pid == 4711);
  CHECK(notes[0].memory_group == "/job");
  CHECK(notes[0].limit_bytes == int64_t{512} << 20);
  CHECK(notes[0].text == kKill);
  CHECK(notes[1].pid == 4712);
  CHECK(notes[2].pid == 4713);
  CHECK(notes[3].kind == KernelNote::Kind::kXid);
  CHECK(notes[3].pid == 4714);
  CHECK(notes[3].pci == "0000:17:00");
  CHECK(notes[4].pid == 0);
}

TEST_CASE("a kill for want of memory on the whole machine has no limit") {
  const std::vector<KernelNote> notes = notes_of(
      {kContext, kKill,
       "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
       "task_memcg=/job,task=python3,pid=5,uid=0",
       "Out of memory: Killed process 5 (python3) total-vm:76668kB"});
  REQUIRE(notes.size() == 2);
  CHECK(notes[1].pid == 5);
  CHECK(notes[1].memory_group == "");
  CHECK(notes[1].limit_bytes == 0);
}

TEST_CASE("lines that make no sense make no notes") {
  CHECK(notes_of({"", "[", "]: segfault at ", "x[]: segfault at 0", "traps: ", "traps: ] ",
                  "oom-kill:", "memory: usage", "x[99999999999999]: segfault at 0"})
            .empty());
}

TEST_CASE("what programs write to the kernel's log is not the kernel's") {
  KernelNotes notes;
  notes.add_record("6,1,51928902008,-;" + std::string(kKill) + "\n SUBSYSTEM=x\n");
  notes.add_record("14,2,51928902008,-;" + std::string(kKill) + "\n");
  notes.add_record("6,3,51928902008,-");
  notes.add_record("");
  REQUIRE(notes.take().size() == 1);
  CHECK(notes.take().front().text == kKill);
}

TEST_CASE("of a flood the last notes stay, and a long line is cut") {
  KernelNotes notes;
  for (int i = 1; i <= 3000; ++i)
    notes.add_line("x[" + std::to_string(i) + "]: segfault at " + std::string(5000, '0'));
  CHECK(notes.take().size() == KernelNotes::kMaxNotes);
  CHECK(notes.take().back().pid == 3000);
  CHECK(notes.take().back().text.size() == 1000);
}

TEST_CASE("each worker gets the lines about its own process") {
  std::vector<Evidence> all = {dead(4711, SIGKILL), dead(4712, SIGSEGV), dead(9, 1 << 8)};
  share_kernel_notes(notes_of({kUsage, kContext, kKill, kSegfault}), true, all);
  CHECK(all[0].kernel_lines == std::vector<std::string>{kKill});
  REQUIRE(all[0].memory);
  CHECK(all[0].memory->cgroup == "/job");
  CHECK(all[0].memory->limit_bytes == int64_t{512} << 20);
  CHECK(all[1].kernel_lines == std::vector<std::string>{kSegfault});
  CHECK(all[2].kernel_lines.empty());
}

TEST_CASE("a process that a worker's last lines name is one of its own") {
  std::vector<Evidence> all = {dead(1, 1 << 8), dead(2, 1 << 8)};
  all[0].stderr_tail = "step 4711 of 9000\n";  // a number is no process
  all[1].stderr_tail = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.\n";
  share_kernel_notes(notes_of({kKill}), true, all);
  CHECK(all[0].kernel_lines.empty());
  CHECK(all[1].kernel_lines == std::vector<std::string>{kKill});
}

TEST_CASE("a crash of a thread is given to the only worker that can have had it") {
  std::vector<Evidence> one = {dead(1, SIGSEGV), dead(2, 1 << 8)};
  share_kernel_notes(notes_of({kSegfault}), true, one);
  CHECK(one[0].kernel_lines == std::vector<std::string>{kSegfault});
  CHECK(one[1].kernel_lines.empty());
  std::vector<Evidence> two = {dead(1, SIGSEGV), dead(2, SIGSEGV)};
  share_kernel_notes(notes_of({kSegfault}), true, two);
  CHECK(two[0].kernel_lines.empty());
  CHECK(two[1].kernel_lines.empty());
  std::vector<Evidence> shell = {dead(1, (128 + SIGSEGV) << 8)};
  share_kernel_notes(notes_of({kSegfault}), true, shell);
  CHECK(shell[0].kernel_lines.size() == 1);
}

TEST_CASE("a stranger's kill does not explain one by hand") {
  std::vector<Evidence> all = {dead(1, SIGKILL)};
  share_kernel_notes(notes_of({kKill}), true, all);
  CHECK(all[0].kernel_lines.empty());
  all[0].memory = MemoryTrouble{"/job", 1, 0};  // a kill was counted in our own cgroup
  share_kernel_notes(notes_of({kKill}), true, all);
  CHECK(all[0].kernel_lines.size() == 1);
}

TEST_CASE("a fault of a GPU is told to those who use it") {
  std::vector<Evidence> all = {dead(1, 1 << 8), dead(2, 1 << 8), dead(3, 1 << 8)};
  all[1].gpu = "0000:17:00.0";
  all[2].gpu = "0000:18:00.0";
  const std::string other = "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.";
  share_kernel_notes(notes_of({kXid, other}), false, all);
  CHECK(all[0].kernel_lines.empty());
  CHECK(all[1].kernel_lines == std::vector<std::string>{kXid});
  CHECK(all[2].kernel_lines == std::vector<std::string>{other});
}

TEST_CASE("the pids of another namespace are not compared") {
  std::vector<Evidence> all = {dead(4711, 1 << 8), dead(2, SIGSEGV)};
  share_kernel_notes(notes_of({kKill, kSegfault}), false, all);
  CHECK(all[0].kernel_lines.empty());
  CHECK(all[1].kernel_lines.size() == 1);
}

TEST_CASE("a log that cannot be read is empty") {
  KernelLog none("/nonexistent/kmsg");
  CHECK_FALSE(none.readable());
  CHECK(none.read().empty());
}

TEST_CASE("a real crash stands in the kernel's log, and an older one does not") {
  KernelLog log;
  if (!log.readable()) return say_skipped("the kernel's log cannot be read");
  const auto shown = read_proc_file("/proc/sys/debug/exception-trace");
  if (shown && shown->rfind('0', 0) == 0) return say_skipped("debug.exception-trace is off");
  std::vector<Evidence> all;
  // Of many crashes at once, on the whole machine, the kernel tells only some.
  for (int i = 0; i < 100; ++i) {
    const auto [pid, status] = crash();
    REQUIRE(WIFSIGNALED(status));
    all = {dead(pid, status)};
    share_kernel_notes(log.read(), sees_machine_pids(), all);
    if (!all[0].kernel_lines.empty()) break;
    poll(nullptr, 0, 100);
  }
  REQUIRE(all[0].kernel_lines.size() == 1);
  CHECK(all[0].kernel_lines[0].find("]: segfault at ") != std::string::npos);
}

}  // namespace muster
