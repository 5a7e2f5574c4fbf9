// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/series.h"

#include <doctest/doctest.h>

#include "browse/browse_fixture.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

constexpr int64_t kStart = 1'790'000'000'000'000;

struct SeriesTest : BrowseTest {
  std::vector<SeriesPoint> series(const std::vector<std::string>& paths) {
    std::optional<std::vector<SeriesPoint>> got;
    auto task = read_series(reader, paths,
                            [&](std::vector<SeriesPoint> points) { got = std::move(points); });
    REQUIRE(run_until([&] { return got.has_value(); }));
    return *got;
  }
  std::shared_ptr<LogFile> timed(const std::string& log_path) {
    auto file = LogFile::create_later(log_path, 0);
    file->keep_times(times_path(log_path));
    return file;
  }
};

}  // namespace

TEST_CASE_FIXTURE(SeriesTest, "a small log gives a point for each step") {
  auto file = timed(path);
  for (int i = 1; i <= 50; ++i) {
    file->append(
        "some text\nstep " + std::to_string(i) + "/50 loss " + std::to_string(100 - i) + "\n",
        kStart + i * 1'000'000);
  }
  auto points = series({path, dir.path + "/stderr.log"});
  REQUIRE(points.size() == 50);
  for (int i = 1; i <= 50; ++i)
    CHECK(points[static_cast<size_t>(i - 1)] ==
          SeriesPoint{kStart + i * 1'000'000, i, 50, 100.0 - i});
}

TEST_CASE_FIXTURE(SeriesTest, "states of a progress bar are points, once for each step") {
  std::string bar;
  for (int i = 0; i < 300; ++i)
    bar += "\r 10%|# | " + std::to_string(i / 3) + "/100 [00:01<00:02, 3.0it/s]";
  write_file(path, bar + "\n");
  auto points = series({path});
  REQUIRE(points.size() == 100);
  CHECK(points[40].step == 40);
  CHECK(points[40].steps == 100);
  CHECK_FALSE(points[40].loss.has_value());
}

TEST_CASE_FIXTURE(SeriesTest, "a loss on the line behind the step belongs to it") {
  write_file(path, "step 5/10\nloss: 0.5\nstep 6/10\nloss: 0.25\n");
  auto points = series({path});
  REQUIRE(points.size() == 2);
  CHECK(points[0] == SeriesPoint{0, 5, 10, 0.5});
  CHECK(points[1] == SeriesPoint{0, 6, 10, 0.25});
}

TEST_CASE_FIXTURE(SeriesTest, "a long log gives evenly spread points in order, and its last") {
  std::string text;
  for (int i = 1; i <= 1'000'000; ++i)
    text += "step " + std::to_string(i) + "/1000000 loss 0.5 and some more text\n";
  write_file(path, text);
  auto points = series({path});
  REQUIRE(points.size() > 900);
  CHECK(points.size() <= kSeriesMost);
  for (size_t i = 1; i < points.size(); ++i) {
    CHECK(points[i].step > points[i - 1].step);
    CHECK(points[i].step - points[i - 1].step < 5'000);
  }
  CHECK(points.back().step == 1'000'000);
}

TEST_CASE_FIXTURE(SeriesTest, "both streams come together by time") {
  auto out = timed(path);
  auto err = timed(dir.path + "/stderr.log");
  for (int i = 0; i < 10; ++i) {
    out->append("loss " + std::to_string(i) + "\n", kStart + i * 1'000'000);
    err->append("step " + std::to_string(i) + "/10\n", kStart + i * 1'000'000 + 500'000);
  }
  auto points = series({path, dir.path + "/stderr.log"});
  REQUIRE(points.size() == 20);
  CHECK(points[4].loss == 2.0);
  CHECK(points[5].step == 2);
}

TEST_CASE_FIXTURE(SeriesTest, "a log without progress, or none at all, has no points") {
  write_file(path, "hello\n");
  CHECK(series({path}).empty());
  CHECK(series({dir.path + "/missing.log"}).empty());
  CHECK(series({}).empty());
}

}  // namespace muster
