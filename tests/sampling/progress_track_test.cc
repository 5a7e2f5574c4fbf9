// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/progress_track.h"

#include <doctest/doctest.h>

#include <string>

using namespace muster;

namespace {

Progress at_step(int64_t step) {
  Progress progress;
  progress.step = step;
  return progress;
}

constexpr int64_t kSecond = 1'000'000;

}  // namespace

TEST_CASE("the speed is that of the steps seen") {
  ProgressTrack track;
  track.note(at_step(10), kSecond);
  CHECK(track.now().steps_per_s < 0);
  track.note(at_step(10), 2 * kSecond);
  CHECK(track.now().steps_per_s < 0);
  track.note(at_step(30), 5 * kSecond);
  CHECK(track.now().steps_per_s == 5.0);
}

TEST_CASE("a slow step does not stand still between two looks") {
  ProgressTrack track;
  for (int i = 0; i < 20; ++i)
    track.note(at_step(i / 4), i * kSecond);
  CHECK(track.now().steps_per_s == 0.25);
}

TEST_CASE("a speed that is told wins") {
  ProgressTrack track;
  Progress told = at_step(1);
  told.steps_per_s = 7;
  track.note(told, kSecond);
  track.note(at_step(100), 2 * kSecond);
  CHECK(track.now().steps_per_s == 7);
}

TEST_CASE("a new epoch begins a new count") {
  ProgressTrack track;
  track.note(at_step(1000), kSecond);
  track.note(at_step(2), 2 * kSecond);
  track.note(at_step(4), 4 * kSecond);
  CHECK(track.now().step == 4);
  CHECK(track.now().steps_per_s == 1.0);
}

TEST_CASE("the last of several lines counts") {
  const Progress progress = progress_in("tep 1/100\nstep 2/100 loss 0.9\nstep 3/100\nsaving\n");
  CHECK(progress.step == 3);
  CHECK(progress.steps == 100);
  CHECK(progress.loss == 0.9);
  CHECK_FALSE(progress_in("").any());
}

TEST_CASE("a worker's report is read, whatever it holds") {
  const Progress progress =
      parse_report(R"({"step": 5, "steps": 10, "steps_per_s": 2.5, "loss": -1})");
  CHECK(progress.step == 5);
  CHECK(progress.steps == 10);
  CHECK(progress.steps_per_s == 2.5);
  CHECK(progress.loss == -1.0);
  for (const char* bad :
       {"", "{", "[1]", "null", R"({"step": "five"})", R"({"step": -3})", R"({"step": 1e300})"})
    CHECK_FALSE(parse_report(bad).any());
  CHECK_FALSE(parse_report("{\"step\": 5" + std::string(kMaxReport, ' ') + "}").any());
}
