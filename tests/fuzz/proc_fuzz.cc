// SPDX-License-Identifier: Apache-2.0
//
// What the workers' side reads from the system. The input holds two texts, separated by a NUL; a
// process chooses its own name, and whoever mounts a file system chooses the names in mountinfo.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "loop/check.h"
#include "supervisor/workers/cgroup.h"
#include "supervisor/workers/guard.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {
namespace {

void check_stat(std::string_view text) {
  auto stat = parse_proc_stat(text);
  if (!stat) return;
  MUST(text.find("(" + stat->comm + ")") != std::string_view::npos);
  MUST(stat->same_process(*stat));
}

void check_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  auto directory = cgroup2_directory(cgroup, mountinfo);
  if (!directory) return;
  MUST(cgroup.find("0::/") != std::string_view::npos);
  MUST(mountinfo.find("cgroup2") != std::string_view::npos);
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view first = input.substr(0, end);
  const std::string_view second =
      end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  muster::check_stat(first);
  for (int pid : muster::parse_pid_list(first))
    MUST(first.find(std::to_string(pid).back()) != std::string_view::npos);
  muster::check_cgroup(first, second);
  const std::string name = muster::user_name(0, first);
  MUST(name.find(':') == std::string::npos && name.find('\n') == std::string::npos);
  return 0;
}
