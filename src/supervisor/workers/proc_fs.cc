// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/proc_fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>

#include "loop/unique_fd.h"

namespace muster {

namespace {

// Takes one blank-separated field off the front of `text`.
std::string_view take_field(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
    text.remove_prefix(1);
  size_t end = text.find_first_of(" \n");
  std::string_view field = text.substr(0, end);
  text.remove_prefix(field.size());
  return field;
}

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  std::string_view field = take_field(text);
  auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc() && end == field.data() + field.size();
}

// Calls `visit` with every entry of a directory whose name is a number. False if it cannot be read.
bool for_each_number(const std::string& path, const std::function<void(int)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return false;
  while (const dirent* entry = readdir(directory.get())) {
    std::string_view name = entry->d_name;
    int number = 0;
    if (take_number(name, number)) visit(number);
  }
  return true;
}

// The children of one process from its threads' lists. Empty optional: this kernel keeps none.
std::optional<std::vector<int>> listed_children(int pid, const std::string& proc) {
  const std::string tasks = proc + "/" + std::to_string(pid) + "/task";
  std::vector<int> children;
  bool missing = false;
  for_each_number(tasks, [&](int task) {
    const std::string base = tasks + "/" + std::to_string(task);
    auto text = read_proc_file(base + "/children");
    if (text) {
      for (int child : parse_pid_list(*text))
        children.push_back(child);
    } else if (access((base + "/stat").c_str(), F_OK) == 0) {
      missing = true;  // the thread is there, its list is not
    }
  });
  if (missing) return std::nullopt;
  return children;
}

// The same question answered by looking at every process.
std::map<int, std::vector<ProcStat>> scanned_children(const std::string& proc) {
  std::map<int, std::vector<ProcStat>> by_parent;
  for_each_number(proc, [&](int pid) {
    if (auto stat = read_proc_stat(pid, proc)) by_parent[stat->ppid].push_back(*stat);
  });
  return by_parent;
}

std::vector<ProcStat> scan_descendants(int root, const std::set<int>& spared,
                                       const std::string& proc) {
  const std::map<int, std::vector<ProcStat>> by_parent = scanned_children(proc);
  std::vector<ProcStat> found;
  std::set<int> seen{root};
  std::vector<int> frontier{root};
  for (size_t i = 0; i < frontier.size(); ++i) {
    auto children = by_parent.find(frontier[i]);
    if (children == by_parent.end()) continue;
    for (const ProcStat& child : children->second) {
      if (spared.count(child.pid) != 0 || !seen.insert(child.pid).second) continue;
      found.push_back(child);
      frontier.push_back(child.pid);
    }
  }
  return found;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  ProcStat stat;
  // The name is whatever stands between the first "(" and the last ")".
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  std::string_view before = text.substr(0, open);
  if (!take_number(before, stat.pid)) return std::nullopt;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  std::string_view state = take_field(rest);
  if (state.size() != 1) return std::nullopt;
  stat.state = state.front();
  if (!take_number(rest, stat.ppid) || !take_number(rest, stat.process_group) ||
      !take_number(rest, stat.session)) {
    return std::nullopt;
  }
  constexpr int kFieldsToFaults = 3;     // tty_nr (7th field) to flags (9th)
  constexpr int kFieldsToStartTime = 4;  // priority (18th) to itrealvalue (21st)
  for (int i = 0; i < kFieldsToFaults; ++i)
    take_field(rest);
  auto take_count = [&rest](uint64_t& count) {
    int64_t number = 0;
    if (!take_number(rest, number)) return false;
    count = static_cast<uint64_t>(std::max<int64_t>(0, number));
    return true;
  };
  for (int i = 0; i < 4; ++i) {  // minflt, cminflt, majflt, cmajflt
    uint64_t count = 0;
    if (!take_count(count)) return std::nullopt;
    stat.faults += count;
  }
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    uint64_t ticks = 0;
    if (!take_count(ticks)) return std::nullopt;
    stat.cpu_ticks += ticks;
    if (i % 2 == 1) stat.system_ticks += ticks;
  }
  for (int i = 0; i < kFieldsToStartTime; ++i)
    take_field(rest);
  if (!take_number(rest, stat.start_time)) return std::nullopt;
  take_field(rest);  // vsize
  take_number(rest, stat.resident_pages);
  return stat;
}

std::vector<int> parse_pid_list(std::string_view text) {
  std::vector<int> pids;
  int pid = 0;
  while (take_number(text, pid))
    pids.push_back(pid);
  return pids;
}

std::optional<std::string> read_proc_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char chunk[4096];
  for (;;) {
    ssize_t got = read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;  // ESRCH: it ended between open and read
    if (got == 0) return text;
    text.append(chunk, static_cast<size_t>(got));
  }
}

std::optional<ProcStat> read_proc_stat(int pid, const std::string& proc) {
  auto text = read_proc_file(proc + "/" + std::to_string(pid) + "/stat");
  return text ? parse_proc_stat(*text) : std::nullopt;
}

std::vector<ProcStat> every_process(const std::string& proc) {
  std::vector<ProcStat> all;
  for_each_number(proc, [&](int pid) {
    if (auto stat = read_proc_stat(pid, proc)) all.push_back(std::move(*stat));
  });
  return all;
}

std::string read_wait_channel(int pid, const std::string& proc) {
  auto text = read_proc_file(proc + "/" + std::to_string(pid) + "/wchan");
  return !text || *text == "0" ? std::string() : *text;
}

std::vector<ProcStat> descendants_of(int root, const std::set<int>& spared,
                                     const std::string& proc) {
  std::vector<ProcStat> found;
  std::set<int> seen{root};
  std::vector<int> frontier{root};
  for (size_t i = 0; i < frontier.size(); ++i) {
    auto children = listed_children(frontier[i], proc);
    if (!children) return scan_descendants(root, spared, proc);
    for (int child : *children) {
      if (spared.count(child) != 0 || seen.count(child) != 0) continue;
      auto stat = read_proc_stat(child, proc);
      // A parent that we do not know: the pid went to a stranger meanwhile.
      if (!stat || seen.count(stat->ppid) == 0) continue;
      seen.insert(child);
      found.push_back(std::move(*stat));
      frontier.push_back(child);
    }
  }
  return found;
}

}  // namespace muster
