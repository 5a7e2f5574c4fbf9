// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "supervisor/logs/retention.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr int kNameTries = 16;
constexpr size_t kMaxRunIdInName = 200;  // file names end at 255 bytes

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string random_name() {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  unsigned char bytes[8];
  MUST(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
  std::string name;
  for (unsigned char byte : bytes)
    name += kLetters[byte % 32];
  return name;
}

Result<void> make_base(const fs::path& base, bool is_default) {
  std::error_code error;
  fs::path made;
  for (const fs::path& part : base) {
    made /= part;
    if (mkdir(made.c_str(), is_default ? 0700 : 0777) == 0 || errno == EEXIST) continue;
    const int why = errno;  // a folder on a read-only disk is told from one that is missing
    if (!fs::is_directory(made, error)) return errno_error(why, "make folder " + made.string());
  }
  struct stat info;
  if (stat(base.c_str(), &info) != 0) return errno_error(errno, base.string());
  if (!S_ISDIR(info.st_mode)) return errno_error(ENOTDIR, base.string());
  // In a temporary folder that everybody shares the name may be somebody else's trap.
  if (is_default && info.st_uid != geteuid()) {
    return errno_error(EPERM, base.string() + " belongs to somebody else");
  }
  return {};
}

Result<RunFolder> make_in(const fs::path& base, const std::string& run_id, bool is_default) {
  if (auto made = make_base(base, is_default); !made) return made.error();
  std::string id = run_id.substr(0, kMaxRunIdInName);
  std::replace(id.begin(), id.end(), '/', '_');
  for (int i = 0; i < kNameTries; ++i) {
    RunFolder folder;
    folder.base = base.string();
    folder.name = id + "_" + random_name();
    folder.path = (base / folder.name).string();
    folder.in_default_base = is_default;
    if (mkdir(folder.path.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return errno_error(errno, "make folder " + folder.path);
    }
    std::string lock = folder.path + "/" + kRunLockFile;
    folder.lock.reset(open(lock.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!folder.lock) return errno_error(errno, "create " + lock);
    // Not LOCK_NB: another muster may hold it for the moment in which it looks who is alive.
    while (flock(folder.lock.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return folder;
  }
  return errno_error(EEXIST, "make a folder in " + base.string());
}

}  // namespace

std::vector<std::string> default_run_bases() {
  std::vector<std::string> bases;
  std::string state = variable("XDG_STATE_HOME");
  std::string home = variable("HOME");
  if (state.empty() && !home.empty()) state = home + "/.local/state";
  if (fs::path(state).is_absolute()) bases.push_back(state + "/muster/runs");
  std::string temporary = variable("TMPDIR");
  if (temporary.empty()) temporary = "/tmp";
  bases.push_back(temporary + "/muster-" + std::to_string(geteuid()));
  return bases;
}

Result<RunFolder> make_run_folder(const std::string& log_dir, const std::string& run_id) {
  if (log_dir == "/dev/null") return RunFolder{};
  if (!log_dir.empty()) {
    std::error_code error;
    fs::path base = fs::absolute(log_dir, error).lexically_normal();
    if (error) {
      return Error{error.value(),
                   "make folder " + log_dir + ": there is no current folder: " + error.message()};
    }
    return make_in(base, run_id, false);
  }
  Result<RunFolder> folder = Error{};
  for (const std::string& base : default_run_bases()) {
    folder = make_in(base, run_id, true);
    if (folder) break;
  }
  return folder;
}

}  // namespace muster
