// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/duration_text.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("a duration is told as precisely as it matters") {
  CHECK(duration_text(-5) == "0 ms");
  CHECK(duration_text(999'999) == "999 ms");
  CHECK(duration_text(1'250'000) == "1.2 s");
  CHECK(duration_text(59'999'999) == "59.9 s");
  CHECK(duration_text(60'000'000) == "00:01:00");
  CHECK(duration_text(751'000'000) == "00:12:31");
  CHECK(duration_text(int64_t{400} * 3600 * 1'000'000) == "400:00:00");
}

TEST_CASE("a time is UTC with milliseconds or microseconds, also before 1970") {
  auto at = [](int64_t us) {
    return std::chrono::system_clock::time_point(std::chrono::microseconds(us));
  };
  CHECK(utc_text(at(1'795'953'600'123'456), 3) == "2026-11-29T12:00:00.123Z");
  CHECK(utc_text(at(1'795'953'600'000'456), 6) == "2026-11-29T12:00:00.000456Z");
  CHECK(utc_text(at(-1), 6) == "1969-12-31T23:59:59.999999Z");
}

}  // namespace muster
