// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/spawn.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "workers/workers_test.h"

namespace muster {

namespace {

struct TempDir {
  std::filesystem::path path;
  TempDir() {
    char name[] = "/tmp/muster_spawn_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs show_process to its end and returns what it printed.
std::string shown(SpawnSpec spec) {
  TempDir dir;
  spec.stdio[1].kind = StdioSource::Kind::kFile;
  spec.stdio[1].path = dir.path / "out";
  auto spawned = spawn(spec);
  REQUIRE(spawned.has_value());
  int status = -1;
  REQUIRE(waitpid(spawned->pid, &status, 0) == spawned->pid);
  CHECK(status == 0);
  return slurp(dir.path / "out");
}

void check_no_child() {
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("a worker leads its session, dies with us and inherits nothing but its stdio") {
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as others may have left it
  const int high = fcntl(leak, F_DUPFD, 200);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  CHECK(shown(helper_spec("", "show_process"))
            .rfind("fd 0\nfd 1\nfd 2\n"
                   "death_signal 9\n"
                   "session_leader 1\n"
                   "group_leader 1\n",
                   0) == 0);
  // Our own mask is as before.
  sigset_t now;
  sigprocmask(SIG_BLOCK, nullptr, &now);
  CHECK(sigismember(&now, SIGTERM) == 1);
  CHECK(sigismember(&now, SIGCHLD) == 0);
  sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
  close(leak);
  close(high);
}

TEST_CASE("CPUs and the limit of open files are set for the child alone") {
  SpawnSpec spec = helper_spec("", "show_process");
  cpu_set_t ours;
  REQUIRE(sched_getaffinity(0, sizeof ours, &ours) == 0);
  for (int cpu = 0; cpu < CPU_SETSIZE && spec.cpus.empty(); ++cpu) {
    if (CPU_ISSET(cpu, &ours)) spec.cpus = {cpu};
  }
  spec.file_limit = 77;
  const std::string text = shown(spec);
  CHECK(text.find("cpus 1\n") != std::string::npos);
  CHECK(text.find("files 77\n") != std::string::npos);
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&ours, &after));
}

TEST_CASE("a worker's limit of open files may be below what we have open") {
  std::vector<UniqueFd> many;
  for (int i = 0; i < 100; ++i)
    many.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnSpec spec = helper_spec("", "show_process");
  spec.file_limit = 50;
  CHECK(shown(spec).find("files 50\n") != std::string::npos);
}

TEST_CASE("CPUs that do not exist are an error that says so") {
  SpawnSpec spec = helper_spec("", "exit_with");
  spec.cpus = {4000};
  auto spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == kNotExecuted);
  CHECK(spawned.error().message == "bind to CPUs: Invalid argument");
  check_no_child();
}

TEST_CASE("a file stream is appended to and made with the usual rights") {
  TempDir dir;
  const auto path = dir.path / "log";
  for (int round = 0; round < 2; ++round) {
    SpawnSpec spec = helper_spec("", "show_process");
    spec.stdio[1].kind = StdioSource::Kind::kFile;
    spec.stdio[1].path = path;
    auto spawned = spawn(spec);
    REQUIRE(spawned.has_value());
    waitpid(spawned->pid, nullptr, 0);
  }
  const std::string text = slurp(path);
  CHECK(text.find("fd 0") != text.rfind("fd 0"));
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);
}

TEST_CASE("streams may be exchanged, and one descriptor may serve both") {
  TempDir dir;
  const int file = open((dir.path / "both").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  SpawnSpec spec;
  spec.executable = "/bin/sh";
  spec.argv = {"sh", "-c", "echo out; echo err >&2"};
  spec.stdio[0].kind = StdioSource::Kind::kNull;
  spec.stdio[1] = {StdioSource::Kind::kFd, file, ""};
  spec.stdio[2] = {StdioSource::Kind::kFd, file, ""};
  auto spawned = spawn(spec);
  REQUIRE(spawned.has_value());
  waitpid(spawned->pid, nullptr, 0);
  CHECK(slurp(dir.path / "both") == "out\nerr\n");
  close(file);

  // In a child of ours, so that its stdio can be changed: 1 and 2 swapped.
  const pid_t child = fork();
  if (child == 0) {
    dup2(open((dir.path / "one").c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open((dir.path / "two").c_str(), O_WRONLY | O_CREAT, 0600), 2);
    spec.stdio[1].fd = 2;
    spec.stdio[2].fd = 1;
    auto swapped = spawn(spec);
    if (swapped.has_value()) waitpid(swapped->pid, nullptr, 0);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(slurp(dir.path / "one") == "err\n");
  CHECK(slurp(dir.path / "two") == "out\n");
}

TEST_CASE("a child gets stdio even if muster was started without") {
  TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    for (int fd : {0, 1, 2})
      close(fd);
    SpawnSpec spec = helper_spec("", "show_process");
    spec.stdio[0].kind = StdioSource::Kind::kInherit;
    spec.stdio[1].kind = StdioSource::Kind::kFile;
    spec.stdio[1].path = dir.path / "out";
    spec.stdio[2].kind = StdioSource::Kind::kInherit;
    auto spawned = spawn(spec);
    if (spawned.has_value()) waitpid(spawned->pid, nullptr, 0);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(slurp(dir.path / "out").rfind("fd 0\nfd 1\nfd 2\ndeath", 0) == 0);
}

TEST_CASE("a pseudo-terminal becomes the controlling terminal") {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(master >= 0);
  REQUIRE(grantpt(master) == 0);
  REQUIRE(unlockpt(master) == 0);
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(slave >= 0);
  SpawnSpec spec = helper_spec("", "show_process");
  spec.stdio[0] = {StdioSource::Kind::kFd, slave, ""};
  CHECK(shown(spec).find("tty 0\n") != std::string::npos);
  spec.controlling_terminal = true;
  CHECK(shown(spec).find("tty 1\n") != std::string::npos);
  close(slave);
  close(master);
}

TEST_CASE("a program that cannot be executed leaves an errno and no process") {
  TempDir dir;
  const int before = open_descriptors();
  SpawnSpec spec = helper_spec("", "exit_with");

  spec.executable = dir.path / "missing";
  auto spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == ENOENT);
  CHECK(spawned.error().message == "execute " + spec.executable + ": No such file or directory");
  check_no_child();

  spec.executable = dir.path / "plain";
  std::ofstream(spec.executable) << "text";
  chmod(spec.executable.c_str(), 0644);
  spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == EACCES);
  check_no_child();

  chmod(spec.executable.c_str(), 0755);
  spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == ENOEXEC);
  check_no_child();

  spec.executable = dir.path / "script";
  std::ofstream(spec.executable) << "#!/no/such/interpreter\n";
  chmod(spec.executable.c_str(), 0755);
  spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == ENOENT);
  CHECK(spawned.error().message.find("interpreter") != std::string::npos);
  check_no_child();
  CHECK(open_descriptors() == before);
}

TEST_CASE("a log file that cannot be opened is named") {
  SpawnSpec spec = helper_spec("", "exit_with");
  spec.stdio[2].kind = StdioSource::Kind::kFile;
  spec.stdio[2].path = "/no/such/folder/err.log";
  auto spawned = spawn(spec);
  REQUIRE_FALSE(spawned.has_value());
  CHECK(spawned.error().code == kNotExecuted);
  CHECK(spawned.error().message ==
        "open stderr /no/such/folder/err.log: No such file or directory");
  check_no_child();
}

}  // namespace muster
