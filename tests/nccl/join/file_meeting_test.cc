// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "nccl/join/member_process.h"

namespace muster::comm {

namespace {

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text << "\nhas no: " << part);
  return found;
}

struct FileMeetingTest {
  ScratchFolder folder;
  std::string file = folder.path("meeting");
  std::string method = "file://" + file;

  std::unique_ptr<MemberProcess> start(int rank, int size, int timeout_ms = 60'000,
                                       const MemberProcess::Variables& variables = {}) {
    return start_member(method, timeout_ms, rank, size, variables);
  }
};

}  // namespace

TEST_CASE_FIXTURE(FileMeetingTest, "a file left by a job that was killed is begun anew") {
  {
    auto a = start(0, 2), b = start(1, 2);
    CHECK(a->next() == "ok 0/2");
    CHECK(b->next() == "ok 1/2");
    CHECK(a->ask("set old 1") == "ok");
    a->kill();
    b->kill();
  }
  REQUIRE(std::filesystem::exists(file));
  auto b = start(1, 2), a = start(0, 2);
  CHECK(a->next() == "ok 0/2");
  CHECK(b->next() == "ok 1/2");
  CHECK(contains(a->ask("get old 50"), "error timeout"));
  CHECK(a->ask("leave 1000") == "ok");
  CHECK(b->ask("leave 1000") == "ok");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE_FIXTURE(FileMeetingTest,
                  "a job that died before all had come does not hide among the new one") {
  {
    auto a = start(0, 2);
    CHECK(a->next(std::chrono::milliseconds(1'000)) == "(silence)");
    a->kill();
  }
  auto b = start(1, 2);
  CHECK(b->next(std::chrono::milliseconds(300)) == "(silence)");
  auto a = start(0, 2);
  CHECK(a->next() == "ok 0/2");
  CHECK(b->next() == "ok 1/2");
}

TEST_CASE_FIXTURE(FileMeetingTest, "a rank that lives and is there already is named by its pid") {
  auto first = start(0, 2);
  CHECK(first->next(std::chrono::milliseconds(1'000)) == "(silence)");
  auto second = start(0, 2);
  const std::string line = second->next();
  CHECK(contains(line, "error mismatch [] joining: " + method + ": rank 0 is there already: pid " +
                           std::to_string(first->pid()) + " on "));
  CHECK(contains(line, ", which lives"));
  auto other = start(1, 2);
  CHECK(first->next() == "ok 0/2");  // not disturbed
  CHECK(other->next() == "ok 1/2");
}

TEST_CASE_FIXTURE(FileMeetingTest, "who waits in a file that is begun anew hears of it") {
  auto a = start(0, 3), b = start(1, 3);
  CHECK(a->next(std::chrono::milliseconds(1'000)) == "(silence)");
  CHECK(b->next(std::chrono::milliseconds(300)) == "(silence)");
  a->kill();
  auto c = start(2, 3, 1'000);
  CHECK(contains(b->next(), "error store_lost [] joining at " + method + ": " + method +
                                ": another job has begun it anew"));
  CHECK(contains(c->next(), "error timeout [0,1] "));
}

TEST_CASE_FIXTURE(FileMeetingTest, "a member that died in the job does not keep the file") {
  auto a = start(0, 3), b = start(1, 3), c = start(2, 3);
  for (auto* member : {&a, &b, &c})
    CHECK((*member)->next().starts_with("ok "));
  b->kill();
  CHECK(a->ask("leave 1000") == "ok");
  CHECK(std::filesystem::exists(file));
  CHECK(c->ask("leave 1000") == "ok");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE_FIXTURE(FileMeetingTest, "a rank that comes again waits for the job it left to end") {
  auto a = start(0, 2), b = start(1, 2);
  CHECK(a->next() == "ok 0/2");
  CHECK(b->next() == "ok 1/2");
  CHECK(a->ask("leave 1000") == "ok");
  auto impatient = start(0, 2, 200);
  CHECK(contains(impatient->next(), "the job before has not ended: rank 0 left it"));
  auto again = start(0, 2);
  CHECK(again->next(std::chrono::milliseconds(500)) == "(silence)");
  CHECK(b->ask("leave 1000") == "ok");
  auto other = start(1, 2);
  CHECK(again->next() == "ok 0/2");
  CHECK(other->next() == "ok 1/2");
}

TEST_CASE_FIXTURE(FileMeetingTest, "a later attempt of the run takes the file over") {
  const auto attempt = [&](int count) {
    return MemberProcess::Variables{{"TORCHELASTIC_RUN_ID", "run"},
                                    {"TORCHELASTIC_RESTART_COUNT", std::to_string(count)}};
  };
  auto old = start(0, 2, 60'000, attempt(0));
  CHECK(old->next(std::chrono::milliseconds(1'000)) == "(silence)");
  auto a = start(0, 2, 60'000, attempt(1)), b = start(1, 2, 60'000, attempt(1));
  CHECK(a->next() == "ok 0/2");
  CHECK(b->next() == "ok 1/2");
  CHECK(contains(old->next(), "another job has begun it anew"));
}

TEST_CASE_FIXTURE(FileMeetingTest, "a file that is something else is left as it is") {
  std::ofstream(file) << "a letter to grandmother, longer than a header of ours would be";
  CHECK(contains(start(0, 1)->next(), "is not one that ranks meet at; it is left as it is"));
  CHECK(std::filesystem::file_size(file) == 62);
  auto in_folder = start_member("file://" + folder.path("none/f"), 1'000, 0, 1);
  CHECK(contains(in_folder->next(), "open: No such file or directory"));
  auto folder_itself = start_member("file://" + folder.path("."), 1'000, 0, 1);
  CHECK(contains(folder_itself->next(), "error "));
}

TEST_CASE_FIXTURE(FileMeetingTest, "a stopped process delays nobody but itself") {
  auto a = start(0, 2), b = start(1, 2);
  CHECK(a->next() == "ok 0/2");
  CHECK(b->next() == "ok 1/2");
  b->signal(SIGSTOP);
  CHECK(a->ask("set k v") == "ok");
  CHECK(a->ask("get k 100") == "ok v");
  CHECK(contains(a->ask("barrier x 200"), "rank 1 of 2 has not arrived"));
  b->signal(SIGCONT);
  CHECK(b->ask("get k 1000") == "ok v");
}

}  // namespace muster::comm
