// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/evidence_lines.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("all that was found around a death is told, a line each") {
  Evidence evidence;
  evidence.memory = MemoryTrouble{"/job", 2, int64_t{16} << 30};
  evidence.full_disks = {{"/tmp (TMPDIR)", 4096, -1}};
  evidence.silent_folder = "/nfs/home (HOME)";
  evidence.store_wait = "/default_pg/0/3";
  evidence.max_rss_kib = 3 << 19;
  evidence.gpu_trouble = "GPU 0000:17:00.0 is lost";
  evidence.core = "/data/core.4711";
  evidence.kernel_lines = {"python3[7]: segfault at 8"};
  CHECK(evidence_lines(evidence, "oom_kill") ==
        std::vector<std::string>{"cgroup /job: killed 2 processes for want of memory, limit 16 GiB",
                                 "/tmp (TMPDIR) has no room: 4 KiB left",
                                 "the file system of /nfs/home (HOME) does not answer",
                                 "it waited in the store for /default_pg/0/3",
                                 "most memory that it had: 1.5 GiB", "GPU 0000:17:00.0 is lost",
                                 "core dump: /data/core.4711",
                                 "kernel: python3[7]: segfault at 8"});
  CHECK(evidence_lines(Evidence(), "exit_code").empty());
}

TEST_CASE("lines of evidence are few, short and clean") {
  Evidence evidence;
  evidence.kernel_lines.assign(100, "\x1b[31m" + std::string(10'000, 'x'));
  const std::vector<std::string> lines = evidence_lines(evidence, "segfault");
  CHECK(lines.size() == event::kMaxEvidenceLines);
  CHECK(lines.front().find('\x1b') == std::string::npos);
  CHECK(lines.front().size() < 500);
}

namespace {

const std::string kHeading(kLastLinesHeading);

Evidence wrote_both() {
  Evidence evidence;
  evidence.last_lines = {{Stream::kStdout, "step 1"},
                         {Stream::kStderr, "a warning"},
                         {Stream::kStdout, " \r"},
                         {Stream::kStdout, "10%\r\x1b[1m20%\r"}};
  return evidence;
}

}  // namespace

TEST_CASE("the last lines of both streams are told in their order") {
  CHECK(evidence_lines(wrote_both(), "exit_code") ==
        std::vector<std::string>{kHeading, "stdout: step 1", "stderr: a warning", "stdout: 20%"});
}

TEST_CASE("of many last lines only the last few are told, and they are short") {
  Evidence evidence = wrote_both();
  for (int i = 0; i < 4; ++i)
    evidence.last_lines.push_back({Stream::kStderr, std::string(10'000, 'x')});
  const std::vector<std::string> lines = evidence_lines(evidence, "exit_code");
  REQUIRE(lines.size() == 7);
  CHECK(lines[1] == "stderr: a warning");
  CHECK(lines[2] == "stdout: 20%");
  CHECK(lines[6].size() < 256);
}

TEST_CASE("last lines of one stream are left to the excerpt") {
  Evidence evidence = wrote_both();
  evidence.last_lines.erase(evidence.last_lines.begin() + 1);
  CHECK(evidence_lines(evidence, "exit_code").empty());
  evidence = wrote_both();
  for (int i = 0; i < 6; ++i)
    evidence.last_lines.push_back({Stream::kStderr, "and on"});
  CHECK_MESSAGE(evidence_lines(evidence, "exit_code").empty(), "the other one's are too old");
}

TEST_CASE("the last lines of one that muster had stopped are about the stop") {
  Evidence evidence = wrote_both();
  evidence.stopped_for = StopReason::kFailure;
  CHECK(evidence_lines(evidence, "exit_code").empty());
}

TEST_CASE("all other evidence goes before the last lines, and they take the room that is left") {
  Evidence evidence = wrote_both();
  evidence.kernel_lines.assign(event::kMaxEvidenceLines - 3, "NVRM: Xid");
  std::vector<std::string> lines = evidence_lines(evidence, "exit_code");
  REQUIRE(lines.size() == event::kMaxEvidenceLines);
  CHECK(lines[lines.size() - 3] == kHeading);
  CHECK(lines.back() == "stdout: 20%");
  for (size_t taken : {2u, 1u, 0u}) {
    evidence.kernel_lines.assign(event::kMaxEvidenceLines - taken, "NVRM: Xid");
    lines = evidence_lines(evidence, "exit_code");
    CHECK(lines == std::vector<std::string>(evidence.kernel_lines.size(), "kernel: NVRM: Xid"));
  }
}

}  // namespace muster
