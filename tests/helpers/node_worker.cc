// SPDX-License-Identifier: Apache-2.0
// A worker for jobs of several nodes; $T is the test's folder, $NODE the node's name in the test.
// - $T/seen/NODE.RANK.PID holds its environment from the moment at which it runs.
// - While it lives it holds a lock on $T/worlds/ATTEMPT.NODE and is named in there. If it finds one
//   of another attempt held by a process that was not killed, two worlds run at once: a line in
//   $T/violations says so.
// - A signal that asks for its end is a line in $T/signals, and ends it with 128 + n.
// - A line in $T/do/NODE.LOCAL_RANK, or in $T/do/all for every worker, tells it what to do:
//   "exit CODE", "kill SIGNAL", "deaf" (ignore signals from now on). The first kind is taken away.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

extern char** environ;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Lines of many writers: each is one write to a file opened for appending.
void append_line(const std::string& path, const std::string& line) {
  int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, line.data(), line.size()) < 0) _exit(99);
  close(fd);
}

std::string unix_time() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%06ld", static_cast<long long>(now.tv_sec),
                now.tv_nsec / 1000);
  return text;
}

void show_environment(const std::string& path) {
  const std::string partial = path + ".partial";
  std::FILE* file = std::fopen(partial.c_str(), "w");
  if (file == nullptr) _exit(98);
  for (char** entry = environ; *entry != nullptr; ++entry)
    std::fprintf(file, "%s\n", *entry);
  std::fclose(file);
  std::rename(partial.c_str(), path.c_str());
}

// ".../attempt_3/0/error.json" -> "3"
std::string attempt() {
  const std::string path = variable("TORCHELASTIC_ERROR_FILE");
  const size_t at = path.rfind("/attempt_");
  if (at == std::string::npos) return "0";
  const size_t begin = at + std::strlen("/attempt_");
  return path.substr(begin, path.find('/', begin) - begin);
}

std::string proc_file(const std::string& pid, const char* name) {
  char text[4096];
  std::FILE* file = std::fopen(("/proc/" + pid + "/" + name).c_str(), "r");
  if (file == nullptr) return "";
  const size_t size = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return std::string(text, size);
}

// Gone, on its way out, or with a SIGKILL that it cannot get around: it executes nothing any more,
// but what it holds is freed only when it gets a processor.
bool was_killed(const std::string& pid) {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING
  const std::string stat = proc_file(pid, "stat");
  const size_t name_end = stat.rfind(')');
  char state = 'X';
  unsigned long flags = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat.c_str() + name_end + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) < 2) {
    return true;
  }
  if (state == 'Z' || state == 'X' || (flags & kExiting) != 0) return true;
  const std::string status = proc_file(pid, "status");
  const size_t pending = status.find("SigPnd:");
  return pending != std::string::npos &&
         (std::strtoull(status.c_str() + pending + 7, nullptr, 16) >> (SIGKILL - 1) & 1) != 0;
}

// The pids that `fd` names, one a line.
bool all_were_killed(int fd) {
  char text[4096];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::string pid;
  for (ssize_t i = 0; i < size; ++i) {
    if (text[i] != '\n') {
      pid += text[i];
      continue;
    }
    if (!was_killed(pid)) return false;
    pid.clear();
  }
  return true;
}

// The lock belongs to this open file, so that it ends with the process. Asking who else holds one
// takes none: two who ask at once do not see each other.
void hold_world(const std::string& folder, const std::string& number, const std::string& node) {
  struct flock lock {};
  lock.l_whence = SEEK_SET;
  lock.l_type = F_RDLCK;
  const std::string mine = number + "." + node;
  int fd = open((folder + "/worlds/" + mine).c_str(), O_RDWR | O_APPEND | O_CREAT, 0644);
  const std::string pid = std::to_string(getpid()) + "\n";
  // Named first: who finds the lock held finds the name.
  if (fd < 0 || write(fd, pid.data(), pid.size()) < 0) _exit(97);
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) _exit(97);
  DIR* worlds = opendir((folder + "/worlds").c_str());
  while (dirent* entry = readdir(worlds)) {
    const std::string other = entry->d_name;
    if (other[0] == '.' || other.substr(0, other.find('.')) == number) continue;
    int theirs = open((folder + "/worlds/" + other).c_str(), O_RDWR | O_CLOEXEC);
    lock = {};
    lock.l_whence = SEEK_SET;
    lock.l_type = F_WRLCK;
    const bool held = fcntl(theirs, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (held && !all_were_killed(theirs))
      append_line(folder + "/violations", unix_time() + " " + mine + " beside " + other + "\n");
    close(theirs);
  }
  closedir(worlds);
}

std::string first_line(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return "";
  char text[64] = "";
  if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
  std::fclose(file);
  return text;
}

void obey(const std::string& order, bool& deaf) {
  char what[16] = "";
  int number = 0;
  std::sscanf(order.c_str(), "%15s %d", what, &number);
  if (std::strcmp(what, "exit") == 0) std::exit(number);
  if (std::strcmp(what, "kill") == 0) {
    sigset_t all;
    sigfillset(&all);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &all, nullptr);
  }
  if (std::strcmp(what, "deaf") == 0) deaf = true;
}

}  // namespace

int main() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1})
    sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);

  const std::string folder = variable("T"), node = variable("NODE");
  const std::string pid = std::to_string(getpid());
  hold_world(folder, attempt(), node);
  show_environment(folder + "/seen/" + node + "." + variable("RANK") + "." + pid);

  const std::string mine = folder + "/do/" + node + "." + variable("LOCAL_RANK");
  bool deaf = false;
  for (;;) {
    const timespec pause{0, 20'000'000};
    const int number = sigtimedwait(&wanted, nullptr, &pause);
    if (number > 0 && !deaf) {
      append_line(folder + "/signals", unix_time() + " " + node + " " + variable("RANK") + " " +
                                           pid + " " + std::to_string(number) + "\n");
      _exit(128 + number);
    }
    obey(first_line(folder + "/do/all"), deaf);
    // Renamed first, so that a worker started in the meantime does not obey as well.
    const std::string taken = mine + "." + pid;
    if (std::rename(mine.c_str(), taken.c_str()) == 0) obey(first_line(taken), deaf);
  }
}
