// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hook/hook_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLine = 160;
constexpr int kNoShell = 127;

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void run_shell(const std::string& command, int input, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  ::_exit(kNoShell);
}

// As fork(), without what libraries have asked to be done in the child: libuv's part of it would
// close descriptors by numbers that belong to pipes of ours by now.
pid_t plain_fork() {
  return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

// A shell that runs, with our ends of its pipes.
class Hook {
 public:
  Hook(int pid, UniqueFd input, UniqueFd output)
      : pid_(pid),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        input_(std::move(input)),
        output_(std::move(output)) {
    for (const UniqueFd* fd : {&input_, &output_})
      ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }

  // Whether it ended in time. It may leave its input unread; what it starts in the background may
  // keep its output open.
  bool wait(std::string_view input, std::chrono::milliseconds limit) {
    const Clock::time_point deadline = Clock::now() + limit;
    for (;;) {
      if (input.empty()) input_.reset();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      pollfd fds[] = {{pidfd_.get(), POLLIN, 0},
                      {output_.get(), POLLIN, 0},
                      {input_ ? input_.get() : -1, POLLOUT, 0}};
      if (::poll(fds, 3, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
      if (fds[1].revents != 0) read();
      if (fds[0].revents != 0) return true;
      if (fds[2].revents != 0) input.remove_prefix(write(input));
    }
  }

  int reap(bool kill_first) {
    if (kill_first) ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (output_) read();
    return status;
  }

  const std::string& tail() const { return tail_; }

 private:
  // All of the rest where nobody reads any more.
  size_t write(std::string_view input) {
    const ssize_t wrote = ::write(input_.get(), input.data(), input.size());
    if (wrote >= 0) return static_cast<size_t>(wrote);
    return errno == EAGAIN || errno == EINTR ? 0 : input.size();
  }

  // What is there, at most a few buffers' full: one that writes without end has a limit too.
  void read() {
    char buffer[kHookOutput];
    for (int i = 0; i < 16; ++i) {
      const ssize_t got = ::read(output_.get(), buffer, sizeof buffer);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return output_.reset();
      if (got < 0) return;
      tail_.append(buffer, static_cast<size_t>(got));
      if (tail_.size() > kHookOutput) tail_.erase(0, tail_.size() - kHookOutput);
    }
  }

  int pid_;
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_;
  std::string tail_;
};

std::string last_line(std::string_view text) {
  std::string last;
  for (std::string& line : clean_lines(text)) {
    if (!line.empty()) last = std::move(line);
  }
  return cut_line(last, kMaxLine);
}

}  // namespace

std::string run_hook(const std::string& command, const std::string& input,
                     std::chrono::milliseconds limit) {
  // One that reads nothing is no error.
  ::signal(SIGPIPE, SIG_IGN);
  auto in = make_pipe();
  auto out = make_pipe();
  if (!in || !out) return "not run: " + (in ? out.error() : in.error()).message;
  const pid_t pid = plain_fork();
  if (pid < 0) return "not run: " + errno_error(errno, "fork").message;
  if (pid == 0) run_shell(command, in->reader.get(), out->writer.get());
  ::setpgid(pid, pid);  // both do it: whoever is first
  in->reader.reset();
  out->writer.reset();
  Hook hook(pid, std::move(in->writer), std::move(out->reader));
  const bool in_time = hook.wait(input, limit);
  const WaitStatus status = decode_wait_status(hook.reap(!in_time));
  if (in_time && status.success()) return "";
  const std::string said = last_line(hook.tail());
  const std::string how = in_time ? describe_end(status)
                                  : "was killed: it had not ended after " +
                                        duration_text(std::chrono::microseconds(limit).count());
  return how + (said.empty() ? "" : ": " + said);
}

}  // namespace muster
