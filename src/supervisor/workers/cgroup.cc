// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

constexpr std::string_view kPrefix = "muster.";
constexpr int kMaxDepth = 16;

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const size_t end = line.find(' ');
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return fields;
}

// mountinfo writes blanks, tabs, line ends and backslashes as \ and three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3') {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Whether `wanted` is one of the names in a list with commas between them.
bool lists(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const size_t end = names.find(',');
    if (names.substr(0, end) == wanted) return true;
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
  return false;
}

std::optional<std::string> own_path(std::string_view controller, std::string_view cgroup) {
  while (!cgroup.empty()) {
    // number:controllers:path
    const std::string_view line = next_line(cgroup);
    const size_t first = line.find(':');
    const size_t second = line.find(":/", first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const bool unified = line.substr(0, first) == "0" && names.empty();
    if (controller.empty() ? unified : lists(names, controller)) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

// `path` relative to what is mounted, if it lies below that.
std::optional<std::string> below(const std::string& root, const std::string& path) {
  if (path.find("/..") != std::string::npos) return std::nullopt;  // outside of our namespace
  if (root == "/") return path;
  if (path.rfind(root, 0) != 0) return std::nullopt;
  const std::string rest = path.substr(root.size());
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  return rest;
}

std::optional<std::string> base_directory() {
  auto cgroup = read_proc_file("/proc/self/cgroup");
  auto mountinfo = read_proc_file("/proc/self/mountinfo");
  if (!cgroup || !mountinfo) return std::nullopt;
  return cgroup2_directory(*cgroup, *mountinfo);
}

std::string tree_path(const std::string& base, int pid) {
  return base + "/" + std::string(kPrefix) + std::to_string(pid);
}

void write_kill(const std::string& directory) {
  UniqueFd fd(open((directory + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (fd) (void)!write(fd.get(), "1", 1);
}

// A worker may have made cgroups of its own below: another muster, for one. They can be removed
// once nothing lives in them.
void remove_tree(const std::string& path, int depth = kMaxDepth) {
  DIR* directory = depth > 0 ? opendir(path.c_str()) : nullptr;
  if (directory != nullptr) {
    while (const dirent* entry = readdir(directory)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
        remove_tree(path + "/" + entry->d_name, depth - 1);
      }
    }
    closedir(directory);
  }
  rmdir(path.c_str());
}

// What is left of processes that were killed together with their front, or had to leave something
// stuck. Whatever still lives in one keeps it from being removed.
void remove_stale_trees(const std::string& base) {
  DIR* directory = opendir(base.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name.rfind(kPrefix, 0) != 0) continue;
    const std::vector<int> owner = parse_pid_list(name.substr(kPrefix.size()));
    if (owner.size() != 1) continue;
    if (owner[0] == getpid() || !read_proc_stat(owner[0])) remove_tree(tree_path(base, owner[0]));
  }
  closedir(directory);
}

}  // namespace

std::optional<CgroupPlace> cgroup_place(std::string_view controller, std::string_view cgroup,
                                        std::string_view mountinfo) {
  const std::optional<std::string> path = own_path(controller, cgroup);
  if (!path) return std::nullopt;
  while (!mountinfo.empty()) {
    // id parent major:minor root mount-point options [optional ...] - type source options
    const std::vector<std::string_view> fields = split(next_line(mountinfo));
    size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-")
      ++dash;
    if (dash + 1 >= fields.size()) continue;
    const bool wanted = controller.empty()
                            ? fields[dash + 1] == "cgroup2"
                            : fields[dash + 1] == "cgroup" && lists(fields.back(), controller);
    if (!wanted) continue;
    if (auto relative = below(unescape(fields[3]), *path)) {
      if (*relative == "/") relative->clear();
      return CgroupPlace{unescape(fields[4]), *relative, fields[3] == "/"};
    }
  }
  return std::nullopt;
}

std::optional<std::string> cgroup2_directory(std::string_view cgroup, std::string_view mountinfo) {
  const auto place = cgroup_place("", cgroup, mountinfo);
  return place ? std::optional(place->directory()) : std::nullopt;
}

Result<std::unique_ptr<CgroupTree>> CgroupTree::make() {
  const auto base = base_directory();
  if (!base) return Error{ENOENT, "cgroup v2 is not mounted"};
  const std::string path = tree_path(*base, getpid());
  remove_stale_trees(*base);
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return errno_error(errno, "make " + path);
  }
  std::unique_ptr<CgroupTree> tree(new CgroupTree(path));
  if (access((path + "/cgroup.kill").c_str(), W_OK) != 0) {
    return errno_error(errno, "cgroup.kill in " + path);  // before Linux 5.14
  }
  return tree;
}

CgroupTree::~CgroupTree() {
  remove_tree(path_);
}

UniqueFd CgroupTree::add(int local_rank) {
  const std::string path = path_ + "/rank_" + std::to_string(local_rank);
  // Never one that is there already: something of an earlier attempt is stuck in it.
  if (mkdir(path.c_str(), 0755) != 0) return UniqueFd();
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void CgroupTree::kill_all() {
  write_kill(path_);
}

void kill_cgroups_of(int supervisor) {
  if (auto base = base_directory()) write_kill(tree_path(*base, supervisor));
}

void remove_cgroups_of(int supervisor) {
  if (auto base = base_directory()) remove_tree(tree_path(*base, supervisor));
}

}  // namespace muster
