// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/job_logs.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "logs/job_logs_fixture.h"

namespace muster {

TEST_CASE_FIXTURE(JobLogsTest, "one worker: its bytes are on the consoles and in its files") {
  begin(1);
  start(0, "printf 'a\\nb'; printf 'e\\n' >&2");
  end(0);
  finish();
  CHECK(console_out() == "a\nb");
  CHECK(console_err() == "e\n");
  CHECK(log(0) == "a\nb");
  CHECK(log(0, Stream::kStderr) == "e\n");
  CHECK(logs->tail(0, Stream::kStdout) == "a\nb");
  CHECK(first_outputs.size() == 2);
  CHECK(logs->log_file(0, Stream::kStdout) == logs->run_dir() + "/attempt_0/0/stdout.log");
  CHECK(logs->error_file(0) == logs->run_dir() + "/attempt_0/0/error.json");
}

TEST_CASE_FIXTURE(JobLogsTest, "teed streams have torchrun's prefix, redirected ones no console") {
  plan.options.tee = "0:1";
  plan.options.redirects = "1:1";
  begin(2);
  start(0, "echo zero");
  start(1, "echo one; echo err >&2");
  end(0);
  end(1);
  finish();
  CHECK(console_out() == "[default0]:zero\n");
  CHECK(console_err() == "[1]: err\n");
  CHECK(log(1) == "one\n");
  CHECK(logs->tail(1, Stream::kStdout) == "");  // it never came through here
}

TEST_CASE_FIXTURE(JobLogsTest, "the last lines of both streams are in the order of their arrival") {
  begin(1);
  const auto came = [&](const char* text) {
    return logs->tail(0, Stream::kStdout) + logs->tail(0, Stream::kStderr) == text;
  };
  // Stopped between two lines, so that each is read before the next one is written.
  start(0, "echo 1; kill -STOP $$; echo 2 >&2; kill -STOP $$; echo 3; echo 4");
  const auto go_on_after = [&](const char* text) {
    bool stopped = false;
    REQUIRE(run_until([&] {
      int status = 0;
      stopped = stopped || waitpid(pids[0], &status, WNOHANG | WUNTRACED) == pids[0];
      return stopped && came(text);
    }));
    REQUIRE(kill(pids[0], SIGCONT) == 0);
  };
  go_on_after("1\n");
  go_on_after("1\n2\n");
  end(0);
  CHECK(logs->last_lines(0, 3) == std::vector<StreamLine>{{Stream::kStderr, "2"},
                                                          {Stream::kStdout, "3"},
                                                          {Stream::kStdout, "4"}});
  CHECK(logs->last_lines(0, 20).front() == StreamLine{Stream::kStdout, "1"});
  begin(1, 1);
  CHECK_MESSAGE(logs->last_lines(0, 20).empty(), "of this attempt");
}

TEST_CASE_FIXTURE(JobLogsTest, "streams that a worker writes to its files itself have no lines") {
  plan.options.redirects = "3";
  begin(1);
  start(0, "echo 1; echo 2 >&2");
  end(0);
  CHECK(log(0) == "1\n");
  CHECK(logs->last_lines(0, 20).empty());
}

TEST_CASE_FIXTURE(JobLogsTest, "every attempt has its own folder and the earlier one stays") {
  begin(1);
  start(0, "echo first");
  end(0);
  std::string before = logs->log_file(0, Stream::kStdout);
  begin(1, 1);
  start(0, "echo second");
  reap(0);
  logs->worker_ended(0, Milliseconds(10'000));
  CHECK(run_until([&] { return drained[0] == 2; }));
  CHECK(read_file(before) == "first\n");
  CHECK(log(0) == "second\n");
}

TEST_CASE_FIXTURE(JobLogsTest, "nothing that a worker wrote before SIGKILL is missing") {
  plan.options.tee = "1";
  begin(1);
  start(0, "i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done; kill -9 $$");
  end(0);
  finish();
  std::string text = log(0);
  CHECK(text.ends_with("line 19999\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 20'000);
  std::string shown = console_out();
  CHECK(std::count(shown.begin(), shown.end(), '\n') == 20'000);
  CHECK(shown.ends_with("[default0]:line 19999\n"));
}

TEST_CASE_FIXTURE(JobLogsTest, "many noisy workers lose nothing in files and in a console file") {
  plan.options.tee = "1";
  begin(6);
  for (int rank = 0; rank < 6; ++rank)
    start(rank, "yes 'a line of a noisy worker' | head -n 300000");
  for (int rank = 0; rank < 6; ++rank)
    end(rank);
  finish();
  for (int rank = 0; rank < 6; ++rank)
    CHECK(std::filesystem::file_size(logs->log_file(rank, Stream::kStdout)) == 300'000 * 25);
  CHECK(console_out().size() == 6 * 300'000 * (25 + 11));
}

TEST_CASE_FIXTURE(JobLogsTest, "output of a child that outlives the worker is kept") {
  begin(1);
  start(0, "(sleep 0.3; echo late) & echo early");
  end(0);
  finish();
  CHECK(log(0) == "early\nlate\n");
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "a descendant that keeps the pipe holds the end up for the bound only") {
  begin(1);
  start(0, "echo said; sleep 1000 & echo $! >" + dir.path + "/pid");
  end(0, Milliseconds(100));
  CHECK(log(0) == "said\n");
  kill(std::atoi(read_file(dir.path + "/pid").c_str()), SIGKILL);
}

TEST_CASE_FIXTURE(JobLogsTest, "that all has come is told before anybody asks, once") {
  begin(2);
  start(0, "echo said");
  start(1, "sleep 1000 & echo $! >" + dir.path + "/pid; echo said");
  CHECK_FALSE(logs->closed(0));
  CHECK(run_until([&] { return closed[0] == 1; }));
  CHECK(logs->closed(0));
  CHECK(logs->tail(0, Stream::kStdout) == "said\n");
  CHECK(log(0) == "said\n");
  // A child of the other one may still have something to say.
  reap(1);
  CHECK_FALSE(logs->closed(1));
  kill(std::atoi(read_file(dir.path + "/pid").c_str()), SIGKILL);
  CHECK(run_until([&] { return closed[1] == 1; }));
  end(0);
  logs->worker_ended(1, Milliseconds(10'000));
  CHECK(run_until([&] { return drained[1] == 1; }));
  CHECK(closed == std::map<int, int>{{0, 1}, {1, 1}});
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "a descendant that never stops writing holds the end up for the bound only") {
  plan.options.console = ConsoleMode::kNone;
  plan.options.log_limit = 1 << 20;
  begin(1);
  start(0, "yes & echo $! >" + dir.path + "/pid");
  end(0, Milliseconds(100));
  kill(std::atoi(read_file(dir.path + "/pid").c_str()), SIGKILL);
}

TEST_CASE_FIXTURE(JobLogsTest, "bytes stay bytes in the file") {
  begin(1);
  start(0, "printf '\\000\\377\\r\\n\\r50%%\\r100%%\\n\\303'; sleep 0.05; printf '\\244\\n'");
  end(0);
  CHECK(log(0) == std::string("\0\xff\r\n\r50%\r100%\n\xc3\xa4\n", 17));
}

TEST_CASE_FIXTURE(JobLogsTest, "without a log folder the console is all there is") {
  plan.options.log_dir = "/dev/null";
  plan.options.redirects = "3";
  plan.options.tee = "3";
  plan.options.duplicate_stdout_filters = {"x"};
  begin(2);
  start(0, "echo zero");
  end(0);
  finish();
  CHECK(console_out() == "[default0]:zero\n");
  CHECK(logs->run_dir().empty());
  CHECK(logs->error_file(0).empty());
  CHECK(logs->log_file(0, Stream::kStdout).empty());
}

TEST_CASE_FIXTURE(JobLogsTest, "filters collect matching lines of teed streams with their prefix") {
  plan.options.tee = "1";
  plan.options.duplicate_stdout_filters = {"1/1", "zz"};
  plan.options.duplicate_stderr_filters = {""};
  begin(2);
  start(0, "echo 'step 1/1'; echo no; printf 'zz at the end'; echo err >&2");
  start(1, "sleep 0.2; echo 'rank one 1/1'");
  end(0);
  end(1);
  finish();
  std::string attempt = logs->run_dir() + "/attempt_0";
  CHECK(read_file(attempt + "/filtered_stdout.log") ==
        "[default0]:step 1/1\n[default0]:zz at the end\n[default1]:rank one 1/1\n");
  CHECK(std::filesystem::exists(attempt + "/filtered_stderr.log"));
  CHECK(read_file(attempt + "/filtered_stderr.log").empty());
}

TEST_CASE_FIXTURE(JobLogsTest,
                  "each attempt has its own filter files, and the old ones are complete") {
  plan.options.tee = "1";
  plan.options.duplicate_stdout_filters = {"x"};
  begin(1);
  start(0, "echo x1");
  end(0);
  std::string before = logs->run_dir() + "/attempt_0/filtered_stdout.log";
  begin(1, 1);
  finish();
  CHECK(read_file(before) == "[default0]:x1\n");
  CHECK(read_file(logs->run_dir() + "/attempt_1/filtered_stdout.log").empty());
}

TEST_CASE_FIXTURE(JobLogsTest, "a full disk is said once and the console goes on") {
  begin(1);
  std::string path = logs->run_dir() + "/attempt_0/0/stdout.log";
  REQUIRE(symlink("/dev/full", path.c_str()) == 0);
  start(0, "echo one; sleep 0.1; echo two");
  end(0);
  finish();
  CHECK(console_out() == "one\ntwo\n");
  REQUIRE(troubles.size() == 2);
  CHECK(troubles[0].find(path) != std::string::npos);
  CHECK(troubles[0].find("No space left") != std::string::npos);
  CHECK(troubles[1].find("lacks 8 bytes") != std::string::npos);
}

TEST_CASE_FIXTURE(JobLogsTest, "a worker that was not started leaves no descriptor") {
  begin(2);
  int before = dup(0);
  close(before);
  REQUIRE(logs->open_worker(0).has_value());
  logs->worker_not_started(0);
  int after = dup(0);
  close(after);
  CHECK(after == before);
}

}  // namespace muster
