// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "loop/unique_fd.h"

namespace muster {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The programs to try, the user's choice first. Without a screen there is no browser.
std::vector<std::string> openers() {
  const std::string chosen = variable("BROWSER");
  std::vector<std::string> programs;
  if (!chosen.empty()) programs.push_back(chosen.substr(0, chosen.find(':')));
  if (!variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty()) {
    programs.insert(programs.end(), {"xdg-open", "gio-open", "sensible-browser", "x-www-browser"});
  }
  if (!variable("WSL_DISTRO_NAME").empty()) programs.emplace_back("wslview");
  return programs;
}

// Its output must not end up between ours, and its end is nobody's business.
bool spawn(const std::string& program, const std::string& argument) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // The kernel reaps it; what we ignore it would ignore too.
  ::signal(SIGCHLD, SIG_IGN);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (int number : {SIGCHLD, SIGPIPE})
    ::sigaddset(&defaults, number);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string name = program;
  std::string value = argument;
  char* argv[] = {name.data(), value.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, name.c_str(), &actions, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed == 0;
}

Result<std::string> write_page(const std::string& url) {
  std::string folder = variable("XDG_RUNTIME_DIR");
  if (folder.empty() || ::access(folder.c_str(), W_OK) != 0) folder = variable("TMPDIR");
  if (folder.empty()) folder = "/tmp";
  std::string path = folder + "/muster-page-XXXXXX.html";
  UniqueFd fd(::mkostemps(path.data(), 5, O_CLOEXEC));  // with mode 0600
  if (!fd) return errno_error(errno, "create " + path);
  const std::string page = leading_page(url);
  if (::write(fd.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size())) {
    const Error error = errno_error(errno, "write " + path);
    ::unlink(path.c_str());
    return error;
  }
  return path;
}

}  // namespace

std::string leading_page(const std::string& url) {
  std::string safe;
  for (char c : url) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '"' || c == '<' || c == '>') {
      safe += '_';  // no address of ours has one
    } else {
      safe += c;
    }
  }
  return "<!doctype html><meta charset=\"utf-8\"><title>muster</title>"
         "<meta name=\"referrer\" content=\"no-referrer\">"
         "<meta http-equiv=\"refresh\" content=\"0;url=" +
         safe + "\"><a href=\"" + safe + "\">the run's page</a>\n";
}

Result<BrowserPage> BrowserPage::open(const std::string& url) {
  const std::vector<std::string> programs = openers();
  if (programs.empty()) return Error{0, "there is no browser here: open the address yourself"};
  Result<std::string> path = write_page(url);
  if (!path) return path.error();
  BrowserPage page(*path);
  for (const std::string& program : programs) {
    if (spawn(program, *path)) return page;
  }
  return Error{0, "no browser could be started: open the address yourself"};
}

BrowserPage::BrowserPage(BrowserPage&& other) noexcept : path_(std::exchange(other.path_, "")) {}

BrowserPage::~BrowserPage() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace muster
