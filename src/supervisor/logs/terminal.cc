// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace muster {

namespace {

struct JobControl {
  int process_group = 0;
  unsigned terminal = 0;     // device number as the kernel encodes it for user space
  int foreground_group = 0;  // of that terminal
};

bool read_job_control(pid_t pid, JobControl& job) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string stat{std::istreambuf_iterator<char>(in), {}};
  // The command's name, in parentheses, may hold anything.
  size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos) return false;
  return std::sscanf(stat.c_str() + after_name + 1, " %*c %*d %d %*d %u %d", &job.process_group,
                     &job.terminal, &job.foreground_group) == 3;
}

}  // namespace

Result<Pty> open_pty(int like) {
  Pty pty;
  pty.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!pty.master || grantpt(pty.master.get()) != 0 || unlockpt(pty.master.get()) != 0) {
    return errno_error(errno, "make a pseudo-terminal");
  }
  // Not by name: /dev/pts may be another one here.
  pty.slave.reset(ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  struct termios settings;
  if (!pty.slave || tcgetattr(pty.slave.get(), &settings) != 0) {
    return errno_error(errno, "open a pseudo-terminal");
  }
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
  tcsetattr(pty.slave.get(), TCSANOW, &settings);
  struct winsize size = {};
  if (ioctl(like, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  ioctl(pty.slave.get(), TIOCSWINSZ, &size);
  return pty;
}

void follow_window_size(int like, int pty) {
  struct winsize wanted = {}, now = {};
  if (ioctl(like, TIOCGWINSZ, &wanted) != 0 || wanted.ws_col == 0) return;
  if (ioctl(pty, TIOCGWINSZ, &now) != 0) return;
  if (now.ws_col != wanted.ws_col || now.ws_row != wanted.ws_row) ioctl(pty, TIOCSWINSZ, &wanted);
}

bool in_background(int fd) {
  unsigned terminal = 0;
  if (ioctl(fd, TIOCGDEV, &terminal) != 0) return false;
  for (pid_t pid : {getpid(), getppid()}) {
    JobControl job;
    if (read_job_control(pid, job) && job.terminal == terminal) {
      return job.foreground_group != job.process_group;
    }
  }
  return false;
}

}  // namespace muster
