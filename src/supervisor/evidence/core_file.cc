// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/core_file.h"

#include <glob.h>
#include <sys/stat.h>

namespace muster {

namespace {

// Characters that glob() would take for more than themselves.
void add_plain(std::string& glob, std::string_view text) {
  for (char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') glob += '\\';
    glob += c;
  }
}

struct Glob {
  std::string text;
  bool has_pid = false;
};

// The pattern as glob() takes it: what is not known of the dead (its program's name, the time, the
// thread, its pid on the machine if it has another one here) stands for anything.
Glob glob_of(std::string_view pattern, int pid, bool same_pids) {
  Glob made;
  std::string& glob = made.text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      add_plain(glob, pattern.substr(i, 1));
      continue;
    }
    if (++i == pattern.size()) break;
    const char what = pattern[i];
    if (what == '%') {
      glob += '%';
    } else if (what == 'p' || (what == 'P' && same_pids)) {
      glob += std::to_string(pid);
      made.has_pid = true;
    } else {
      glob += '*';
    }
  }
  return made;
}

// The newest file that matches and was written since then. If it must be `alone`, and there are
// others, it may be anybody's.
std::string newest(const std::string& pattern, int64_t since, bool alone) {
  glob_t found{};
  std::string best;
  int64_t best_time = since - 1;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat info {};
      if (stat(found.gl_pathv[i], &info) != 0 || !S_ISREG(info.st_mode)) continue;
      if (alone && !best.empty() && info.st_mtime >= since) {
        best.clear();
        break;
      }
      if (info.st_mtime <= best_time) continue;
      best_time = info.st_mtime;
      best = found.gl_pathv[i];
    }
  }
  globfree(&found);
  return best;
}

}  // namespace

std::string core_of(std::string_view pattern, int pid, bool same_pids, const std::string& folder,
                    int64_t since) {
  while (!pattern.empty() && pattern.back() == '\n')
    pattern.remove_suffix(1);
  if (pattern.empty()) pattern = "core";
  if (pattern.front() == '|') {
    const std::string_view program = pattern.substr(1, pattern.find(' ') - 1);
    if (program.find("systemd-coredump") != std::string_view::npos) {
      return "coredumpctl info " + std::to_string(pid);
    }
    return "given to " + std::string(program);
  }
  auto [path, has_pid] = glob_of(pattern, pid, same_pids);
  if (path.front() != '/') {
    std::string base;
    add_plain(base, folder);
    path.insert(0, base + "/");
  }
  // With kernel.core_uses_pid the kernel adds the pid where the pattern has none.
  std::string core;
  if (!has_pid) core = newest(path + "." + std::to_string(pid), since, false);
  return core.empty() ? newest(path, since, !has_pid) : core;
}

}  // namespace muster
