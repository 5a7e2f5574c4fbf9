// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/screen.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string_view>

#include "supervisor/commands/say.h"
#include "supervisor/logs/screen_text.h"

namespace muster {

namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l";
constexpr std::string_view kLeave = "\033[0m\033[?7h\033[?25h\033[?1049l";

// For the handler of a crash too, so plain data and calls that are safe in one.
struct Taken {
  bool screen = false;
  bool keyboard = false;
  termios before{};
};
Taken taken;

void give_back() {
  if (taken.keyboard) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &taken.before);
  if (taken.screen && ::write(STDOUT_FILENO, kLeave.data(), kLeave.size()) < 0) return;
  taken.screen = taken.keyboard = false;
}

// SIGTRAP and SIGSYS end what a compiler's trap and a filter of system calls stop.
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

void on_crash(int signal) {
  give_back();
  ::raise(signal);  // the handler is gone: the default does the rest
}

}  // namespace

Screen::Screen() {
  for (int signal : kCrashes) {
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(signal, &action, nullptr);
  }
  enter();
}

Screen::~Screen() {
  leave();
}

void Screen::enter() {
  if (::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &taken.before) == 0) {
    termios raw = taken.before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    // A background job that sets the terminal is stopped until it is in front.
    taken.keyboard = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  taken.screen = true;
  print(kEnter);
  measure();
}

void Screen::leave() {
  give_back();
}

void Screen::measure() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return;
  rows_ = size.ws_row;
  columns_ = size.ws_col;
}

void Screen::show(const std::vector<std::string>& lines, size_t first, const std::string& foot) {
  std::string frame = "\033[H";
  const auto room = static_cast<size_t>(rows_ - 1);
  for (size_t i = 0; i < room; ++i) {
    if (first + i < lines.size()) frame += clip_to_columns(lines[first + i], columns_);
    frame += "\033[0m\033[K\r\n";
  }
  frame += clip_to_columns(foot, columns_);
  frame += "\033[0m\033[K";
  print(frame);
}

}  // namespace muster
