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
  evidence.core = "/work/core.4711";
  evidence.kernel_lines = {"python3[7]: segfault at 8"};
  CHECK(evidence_lines(evidence, "oom_kill") ==
        std::vector<std::string>{"cgroup /job: killed 2 processes for want of memory, limit 16 GiB",
                                 "/tmp (TMPDIR) has no room: 4 KiB left",
                                 "the file system of /nfs/home (HOME) does not answer",
                                 "it waited in the store for /default_pg/0/3",
                                 "most memory that it had: 1.5 GiB", "GPU 0000:17:00.0 is lost",
                                 "core dump: /work/core.4711",
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

}  // namespace muster
