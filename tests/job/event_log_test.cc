// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "diagnosis/run_program.h"
#include "job/job_story.h"
#include "loop/fd_watch.h"
#include "loop/loop_test.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"
#include "supervisor/job/event_json.h"

namespace muster {

namespace {

std::unique_ptr<EventLog> open_log(Loop& loop, const std::string& path,
                                   std::vector<std::string>* troubles = nullptr) {
  auto log = EventLog::open(loop, path, [troubles](const std::string& text) {
    if (troubles) troubles->push_back(text);
  });
  REQUIRE(log);
  return std::move(*log);
}

Event trouble_event(std::string text) {
  Event event;
  event.body = event::Trouble{"test", std::move(text)};
  return event;
}

}  // namespace

TEST_CASE_FIXTURE(LoopTest, "what was appended can be read back in order") {
  TestFolder folder;
  JobStory story = eventful_story();
  auto log = open_log(loop, folder.file("events.jsonl"));
  for (const Event& event : story.events)
    log->append(event);
  bool flushed = false;
  log->flush([&] { flushed = true; });
  CHECK_FALSE(flushed);
  REQUIRE(run_until([&] { return flushed; }));
  auto history = read_events(folder.file("events.jsonl"));
  REQUIRE(history);
  CHECK(history->skipped_lines == 0);
  CHECK_FALSE(history->cut_at_end);
  REQUIRE(history->events.size() == story.events.size());
  for (size_t i = 0; i < story.events.size(); ++i) {
    CHECK(event_to_json(history->events[i]) == event_to_json(story.events[i]));
  }
}

TEST_CASE_FIXTURE(LoopTest, "a flush with nothing to write calls back too") {
  TestFolder folder;
  auto log = open_log(loop, folder.file("events.jsonl"));
  bool flushed = false;
  log->flush([&] { flushed = true; });
  CHECK(run_until([&] { return flushed; }));
}

TEST_CASE("events appended before the owner goes are written as long as the loop turns") {
  TestFolder folder;
  {
    Loop loop;
    auto log = open_log(loop, folder.file("events.jsonl"));
    for (int i = 0; i < 1000; ++i)
      log->append(trouble_event(std::to_string(i)));
    bool called = false;
    log->flush([&] { called = true; });
    log.reset();
    loop.run();
    CHECK_FALSE(called);  // a dropped owner is silent
  }
  auto history = read_events(folder.file("events.jsonl"));
  REQUIRE(history);
  CHECK(history->events.size() == 1000);
}

TEST_CASE("a file that ends in a cut line is read up to it") {
  TestFolder folder;
  std::string whole;
  for (const Event& event : eventful_story().events)
    whole += event_to_json(event) + "\n";
  auto count_lines = [](std::string_view text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  for (size_t length = whole.size() - 300; length <= whole.size(); length += 7) {
    std::string_view cut = std::string_view(whole).substr(0, length);
    auto history = read_events(folder.write("events.jsonl", cut));
    REQUIRE(history);
    CHECK(history->events.size() == count_lines(cut));
    CHECK(history->cut_at_end == (cut.back() != '\n'));
    CHECK(history->skipped_lines == 0);
  }
}

TEST_CASE("damaged, foreign and endless lines are skipped and counted") {
  TestFolder folder;
  std::string good = event_to_json(trouble_event("x")) + "\n";
  std::string text = good + "{broken\n\n" + std::string(5 << 20, 'y') + "\n" +
                     "{\"event\":\"of_a_newer_version\"}\n" + good;
  auto history = read_events(folder.write("events.jsonl", text));
  REQUIRE(history);
  CHECK(history->events.size() == 2);
  CHECK(history->skipped_lines == 3);
  CHECK_FALSE(read_events(folder.file("absent")));
}

TEST_CASE_FIXTURE(LoopTest, "a killed writer leaves whole lines and at most one cut one") {
  TestFolder folder;
  std::string path = folder.file("events.jsonl");
  int pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    Loop child_loop;
    auto log = EventLog::open(child_loop, path, nullptr);
    if (!log) _exit(1);
    child_loop.run_until(
        [&] {
          for (int i = 0; i < 50; ++i)
            (*log)->append(trouble_event(std::string(500, 'z')));
          return false;
        },
        Milliseconds(60'000));
    _exit(1);
  }
  Owned<Timer> look = Timer::repeat(loop, Milliseconds(2), [] {});
  run_until([&] {
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 && facts.st_size > 200'000;
  });
  kill(pid, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFSIGNALED(status));
  auto history = read_events(path);
  REQUIRE(history);
  CHECK(history->events.size() > 100);
  CHECK(history->skipped_lines == 0);
}

TEST_CASE_FIXTURE(LoopTest,
                  "a stalled disk neither blocks the loop nor grows memory without bound") {
  TestFolder folder;
  std::string path = folder.file("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader);
  std::vector<std::string> troubles;
  auto log = open_log(loop, path, &troubles);
  // The pipe takes 64 KiB; everything beyond waits, up to the limit.
  const std::string big(1 << 20, 'x');
  for (int i = 0; i < 40; ++i)
    log->append(trouble_event(big));
  Event end;
  end.body = event::JobEnded{Outcome::kFailed, 3, ""};
  log->append(end);
  bool flushed = false;
  log->flush([&] { flushed = true; });
  std::string text, block(1 << 16, '\0');
  auto drain = [&] {
    for (ssize_t count = 1; count > 0;) {
      count = read(reader.get(), block.data(), block.size());
      if (count > 0) text.append(block, 0, static_cast<size_t>(count));
    }
  };
  auto watch = FdWatch::start(loop, reader.get(), FdWatch::kReadable, [&](int) { drain(); });
  REQUIRE(watch);
  REQUIRE(run_until([&] { return flushed; }));
  drain();
  CHECK(text.size() < 20 * big.size());
  CHECK(text.size() > 16 * big.size());
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0].find("events were dropped") != std::string::npos);
  CHECK(text.find("\"job_ended\"") != std::string::npos);
  CHECK(text.back() == '\n');
}

TEST_CASE_FIXTURE(LoopTest, "a disk that is full is told once and ends nothing") {
  std::vector<std::string> troubles;
  auto log = open_log(loop, "/dev/full", &troubles);
  int flushes = 0;
  for (int i = 0; i < 3; ++i) {
    log->append(trouble_event("x"));
    log->flush([&] { ++flushes; });
    REQUIRE(run_until([&] { return flushes == i + 1; }));
  }
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0] == "write /dev/full: No space left on device");
}

}  // namespace muster
