// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hook/failure_hook.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "loop/loop_test.h"

namespace muster {

namespace {

struct HookTest : LoopTest {
  std::string folder = make_folder();
  std::vector<std::string> troubles;
  int idle = 0;

  HookTest() = default;
  HookTest(const HookTest&) = delete;
  ~HookTest() { std::filesystem::remove_all(folder); }

  static std::string make_folder() {
    std::string path = std::filesystem::temp_directory_path() / "hook_test.XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    return path;
  }

  FailureHook make(const std::string& command, Milliseconds limit = FailureHook::kLimit) {
    return FailureHook(
        loop, "cd " + folder + "; " + command,
        {[this](const std::string& trouble) { troubles.push_back(trouble); }, [this] { ++idle; }},
        limit);
  }
  void wait(const FailureHook& hook) {
    CHECK(run_until([&] { return !hook.busy() && idle > 0; }));
  }
  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder + "/" + name); }
};

}  // namespace

TEST_CASE_FIXTURE(HookTest, "the command gets the verdict on its standard input") {
  const std::string verdict = "{\"kind\": \"segfault\"}\n" + std::string(300'000, 'x');
  FailureHook hook = make("cat >got");
  hook.run(verdict);
  CHECK(hook.busy());
  wait(hook);
  CHECK(troubles.empty());
  CHECK(file("got") == verdict);
}

TEST_CASE_FIXTURE(HookTest, "one that leaves its input unread has done nothing wrong") {
  FailureHook hook = make("exit 0");
  hook.run(std::string(300'000, 'x'));
  wait(hook);
  CHECK(troubles.empty());
}

TEST_CASE_FIXTURE(HookTest, "how it failed is told with its last line") {
  FailureHook hook = make("echo first; echo 'no such channel' >&2; echo; exit 3");
  hook.run("{}");
  wait(hook);
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0] == "exited with code 3: no such channel");
}

TEST_CASE_FIXTURE(HookTest, "a signal that ended it is told") {
  FailureHook hook = make("kill -SEGV $$");
  hook.run("{}");
  wait(hook);
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0].starts_with("killed by SIGSEGV"));
}

TEST_CASE_FIXTURE(HookTest, "one that takes too long is killed with all that it started") {
  FailureHook hook = make("echo begun; (sleep 99; echo late >late) | cat; :", Milliseconds(200));
  hook.run("{}");
  wait(hook);
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0] == "was killed: it had not ended after 200 ms: begun");
  CHECK_FALSE(has("late"));
}

TEST_CASE_FIXTURE(HookTest, "one that writes without end has a limit too") {
  FailureHook hook = make("yes", Milliseconds(200));
  hook.run("{}");
  wait(hook);
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0] == "was killed: it had not ended after 200 ms: y");
}

TEST_CASE_FIXTURE(HookTest, "what it leaves in the background is not waited for") {
  FailureHook hook = make("sleep 3 & exit 0");
  hook.run("{}");
  CHECK(run_until([&] { return !hook.busy(); }, Milliseconds(2'500)));
  CHECK(troubles.empty());
}

TEST_CASE_FIXTURE(HookTest, "verdicts are told one after the other") {
  FailureHook hook = make("read -r n; [ ! -e busy ] || exit 9; : >busy; echo $n >>got; rm busy");
  for (int i = 0; i < 4; ++i)
    hook.run(std::to_string(i) + "\n");
  wait(hook);
  CHECK(file("got") == "0\n1\n2\n3\n");
  CHECK(troubles.empty());
  CHECK(idle == 1);
}

TEST_CASE_FIXTURE(HookTest, "of too many that wait the oldest is left out, and this is told") {
  FailureHook hook = make("read -r n; echo $n >>got");
  for (size_t i = 0; i < FailureHook::kMaxWaiting + 2; ++i)
    hook.run(std::to_string(i) + "\n");
  wait(hook);
  CHECK(troubles == std::vector<std::string>{"a verdict was left out: 8 newer ones wait for it"});
  CHECK(file("got") == "0\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

TEST_CASE_FIXTURE(HookTest, "one that is dropped ends with what it started") {
  // Nothing in the loop tells of what happens to a file, or to a process of another.
  Owned<Timer> tick = Timer::repeat(loop, Milliseconds(10), [] {});
  {
    FailureHook hook = make("echo $$ >pid; exec sleep 99");
    hook.run("{}");
    CHECK(run_until([&] { return !file("pid").empty(); }));
  }
  const std::string process = "/proc/" + file("pid").substr(0, file("pid").find('\n'));
  const auto gone = [&] {
    std::ostringstream stat;
    stat << std::ifstream(process + "/stat").rdbuf();
    return stat.str().empty() || stat.str().find(") Z ") != std::string::npos;
  };
  CHECK(run_until(gone));
}

}  // namespace muster
