// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/console.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"

namespace muster {

namespace {

struct ConsoleTest : LoopTest {
  UniqueFd reader, writer;
  std::string seen;  // what take() has read
  std::unique_ptr<Console> console;

  ConsoleTest() { signal(SIGPIPE, SIG_IGN); }

  void on_pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
    fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  }
  void on_terminal() {
    reader.reset(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE((grantpt(reader.get()) == 0 && unlockpt(reader.get()) == 0));
    writer.reset(open(ptsname(reader.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(isatty(writer.get()));
    struct termios settings;
    tcgetattr(writer.get(), &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    tcsetattr(writer.get(), TCSANOW, &settings);
    struct winsize size = {25, 20, 0, 0};
    ioctl(writer.get(), TIOCSWINSZ, &size);
  }
  void start(int ranks, bool fold = false) {
    Console::Settings settings;
    settings.ranks = ranks;
    settings.fold = fold;
    settings.on_room = [] {};
    console = std::make_unique<Console>(loop, writer.get(), settings);
  }
  Console::SourceId add(int rank, const std::string& prefix, bool raw = false) {
    return console->add_source(rank, Prefix(prefix, {}), raw);
  }
  const std::string& take() {
    char bytes[65536];
    for (ssize_t n; (n = read(reader.get(), bytes, sizeof bytes)) > 0;)
      seen.append(bytes, static_cast<size_t>(n));
    return seen;
  }
  // Until the console shows exactly this.
  bool shows(const std::string& text) {
    bool same = run_until([&] { return take() == text; }, Milliseconds(5'000));
    if (!same) CHECK(seen == text);
    return same;
  }
  void settle(Milliseconds time) {
    bool over = false;
    Owned<Timer> timer = Timer::start(loop, time, [&] { over = true; });
    run_until([&] { return over; });
  }
};

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE_FIXTURE(ConsoleTest, "lines of several ranks come whole, each with its prefix") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "[1]: ");
  console->feed(a, "one\ntw");
  console->feed(b, "three\n");
  console->feed(a, "o\n");
  CHECK(shows("[0]: one\n[1]: three\n[0]: two\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "a partial line is shown in the end and continued without prefix") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: ");
  console->feed(a, "partial");
  CHECK(take().empty());
  CHECK(shows("[0]: partial"));
  console->feed(a, " end\nnext\n");
  CHECK(shows("[0]: partial end\n[0]: next\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "a long line that comes in pieces is not cut by another rank") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "[1]: ");
  const std::string half(400'000, 'x');
  console->feed(a, half);
  console->feed(b, "short\n");
  console->feed(a, half + "\n");
  CHECK(shows("[1]: short\n[0]: " + half + half + "\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "another rank ends an open line first, and its rest has a prefix") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "[1]: ");
  console->feed(a, "partial");
  CHECK(shows("[0]: partial"));
  console->feed(b, "other\n");
  console->feed(a, " end\n");
  CHECK(shows("[0]: partial\n[1]: other\n[0]:  end\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "muster's own lines stand alone") {
  on_pipe();
  start(1);
  auto a = add(0, "");
  console->feed(a, "prompt> ");
  CHECK(shows("prompt> "));
  console->say("muster: hello");
  console->feed(a, "rest\n");
  CHECK(shows("prompt> \nmuster: hello\nrest\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "the last line stays without newline") {
  on_pipe();
  start(1);
  auto a = add(0, "");
  console->feed(a, "no newline");
  console->end(a);
  CHECK(shows("no newline"));
}

TEST_CASE_FIXTURE(ConsoleTest, "raw bytes pass as they come") {
  on_pipe();
  start(1);
  auto a = add(0, "", true);
  std::string bytes("\r1%\r2%\0\xff x", 10);
  console->feed(a, bytes);
  CHECK(shows(bytes));
}

TEST_CASE_FIXTURE(ConsoleTest, "a line of 16 MiB has one prefix and every byte") {
  TempDir dir;
  writer.reset(open((dir.path + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  start(2);
  auto a = add(0, "[0]: ");
  std::string piece(64 * 1024, 'x');
  for (int i = 0; i < 256; ++i) {
    console->feed(a, piece);
    REQUIRE(run_until([&] { return !console->wants_pause(); }));
  }
  console->feed(a, "\nend\n");
  REQUIRE(run_until([&] { return console->idle(); }));
  std::string text = read_file(dir.path + "/out");
  CHECK(text.size() == 5 + 256 * piece.size() + 1 + 9);
  CHECK(count(text, "[0]: ") == 2);
  CHECK(text.substr(text.size() - 10) == "\n[0]: end\n");
}

TEST_CASE_FIXTURE(ConsoleTest, "a full pipe skips whole lines, counts them and goes on") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: ");
  std::string lines;
  int fed = 0;
  for (int i = 0; i < 200; ++i) {
    lines.clear();
    for (int j = 0; j < 1000; ++j)
      lines += "line " + std::to_string(fed++) + std::string(80, '.') + "\n";
    console->feed(a, lines);
  }
  CHECK_FALSE(console->idle());
  REQUIRE(run_until([&] {
    take();
    return console->idle();
  }));
  console->feed(a, "after\n");
  REQUIRE(run_until([&] { return take().ends_with("[0]: after\n"); }));
  size_t notice = seen.find("muster: ");
  REQUIRE(notice != std::string::npos);
  int skipped = std::atoi(seen.c_str() + notice + 8);
  CHECK(skipped > 0);
  CHECK(count(seen, "muster: ") == 1);
  CHECK(static_cast<int>(count(seen, "[0]: line ")) + skipped == fed);
  CHECK(count(seen, "\n[0]: ") + count(seen, "\nmuster: ") + 1 == count(seen, "\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "a stopped terminal holds nobody up and is told what it missed") {
  on_terminal();
  start(1);
  auto a = add(0, "");
  for (int i = 0; i < 100; ++i) {
    console->feed(a, std::string(100'000, 'x') + "\n");
    CHECK_FALSE(console->wants_pause());
  }
  REQUIRE(run_until([&] {
    take();
    return console->idle();
  }));
  CHECK(count(seen, "\n") - 1 +
            static_cast<size_t>(std::atoi(seen.c_str() + seen.find("muster: ") + 8)) ==
        100);
}

TEST_CASE_FIXTURE(ConsoleTest, "what was skipped before muster's own line is said before it") {
  on_pipe();
  start(1);
  auto a = add(0, "");
  for (int i = 0; i < 100; ++i)
    console->feed(a, std::string(100'000, 'x') + "\n");
  console->say("muster: the end");
  REQUIRE(run_until([&] {
    take();
    return console->idle();
  }));
  CHECK(count(seen, " lines skipped here") == 1);
  CHECK(seen.ends_with("\nmuster: the end\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "our console does not make the shell's descriptor nonblocking") {
  on_pipe();
  start(1);
  CHECK((fcntl(writer.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE_FIXTURE(ConsoleTest, "a reader that went away is no trouble") {
  on_pipe();
  start(1);
  auto a = add(0, "");
  reader.reset();
  for (int i = 0; i < 10; ++i)
    console->feed(a, "line\n");
  CHECK(run_until([&] { return console->idle(); }));
  console->say("muster: nobody hears this");
  CHECK(run_until([&] { return console->idle(); }));
}

TEST_CASE_FIXTURE(ConsoleTest, "a full disk under the console holds nobody up") {
  writer.reset(open("/dev/full", O_WRONLY | O_CLOEXEC));
  start(1);
  auto a = add(0, "");
  for (int i = 0; i < 100; ++i) {
    console->feed(a, std::string(100'000, 'x') + "\n");
    REQUIRE(run_until([&] { return !console->wants_pause(); }));
  }
  CHECK(run_until([&] { return console->idle(); }));
}

TEST_CASE_FIXTURE(ConsoleTest, "a file console gets everything, however fast it comes") {
  TempDir dir;
  writer.reset(open((dir.path + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  start(2);
  auto a = add(0, "[0]: ");
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += std::string(99, 'x') + "\n";
  for (int i = 0; i < 500; ++i) {
    console->feed(a, lines);
    REQUIRE(run_until([&] { return !console->wants_pause(); }));
  }
  REQUIRE(run_until([&] { return console->idle(); }));
  CHECK(std::filesystem::file_size(dir.path + "/out") == 500'000u * 105);
}

TEST_CASE_FIXTURE(ConsoleTest, "a terminal shows progress in its last row, below the lines") {
  on_terminal();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "[1]: ");
  console->feed(a, "\r10%");
  CHECK(shows("[0]: 10%"));
  console->feed(b, "line\n");
  CHECK(shows("[0]: 10%\r\x1b[K[1]: line\n[0]: 10%"));
  console->feed(a, "\r100%\n");
  CHECK(shows("[0]: 10%\r\x1b[K[1]: line\n[0]: 10%\r\x1b[K[0]: 100%\n"));
}

TEST_CASE_FIXTURE(ConsoleTest,
                  "progress is shown a few times a second and ends in its last state") {
  on_terminal();
  start(1);
  auto a = add(0, "");
  for (int i = 0; i <= 1000; ++i)
    console->feed(a, "\r" + std::to_string(i));
  REQUIRE(run_until([&] { return take().ends_with("\r\x1b[K1000"); }));
  CHECK(count(seen, "\x1b[K") <= 100);
  CHECK(count(seen, "\n") == 0);
}

TEST_CASE_FIXTURE(ConsoleTest, "progress is clipped to the terminal's width") {
  on_terminal();
  start(1);
  auto a = add(0, "");
  console->feed(a, "\r0123456789012345678901234567890123456789");
  CHECK(shows("0123456789012345678"));
}

TEST_CASE_FIXTURE(ConsoleTest, "the colour of progress that was clipped does not run on") {
  on_terminal();
  start(1);
  auto a = add(0, "");
  console->feed(a, "\r\x1b[31m0123456789012345678901234567890123456789\x1b[0m");
  CHECK(shows("\x1b[31m0123456789012345678\x1b[0m"));
}

TEST_CASE_FIXTURE(ConsoleTest, "progress of several ranks in a pipe is one line each at the end") {
  on_pipe();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "[1]: ");
  for (int i = 0; i < 100; ++i) {
    console->feed(a, "\r" + std::to_string(i) + "%");
    console->feed(b, "\r" + std::to_string(i) + "%");
  }
  console->feed(a, "\n");
  console->end(b);
  CHECK(shows("[0]: 99%\n[1]: 99%"));
}

TEST_CASE_FIXTURE(ConsoleTest, "progress of one rank in a pipe is redrawn in place") {
  on_pipe();
  start(1);
  auto a = add(0, "");
  console->feed(a, "\r1%");
  CHECK(shows("1%"));
  console->feed(a, "\r2%");
  CHECK(shows("1%\r2%"));
  console->feed(a, "\r3%\nnext\n");
  CHECK(shows("1%\r2%\r3%\nnext\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "folded lines are shown once with their ranks") {
  on_pipe();
  start(3, true);
  auto a = add(0, "[0]: "), b = add(1, "[1]: "), c = add(2, "[2]: ");
  for (auto id : {a, b, c})
    console->feed(id, "same\n");
  CHECK(shows("[0-2]: same\n"));
  console->feed(a, "only here\n");
  CHECK(shows("[0-2]: same\n[0]: only here\n"));
}

TEST_CASE_FIXTURE(ConsoleTest,
                  "a line that waits to be folded keeps its prefix when its stream ends") {
  on_pipe();
  start(2, true);
  auto a = add(0, "<zero> "), b = add(1, "<one> ");
  console->feed(a, "last\nonly zero\n");
  console->end(a);
  console->feed(b, "last\n");
  console->end(b);
  CHECK(shows("[0-1]: last\n<zero> only zero\n"));
}

TEST_CASE_FIXTURE(ConsoleTest, "a rank cannot move a shared terminal's cursor into other lines") {
  on_terminal();
  start(2);
  auto a = add(0, "[0]: "), b = add(1, "", false);
  console->feed(a, "\x1b[2A\x1b[31mred\x1b[0m\n");
  console->feed(b, "\x1b[2Aup\n");  // has no prefix: as it came
  CHECK(shows("[0]: \x1b[31mred\x1b[0m\n\x1b[2Aup\n"));
}

}  // namespace muster
