// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/values.h"

#include <doctest/doctest.h>

#include <csignal>

namespace muster {

using Strings = std::vector<std::string>;

TEST_CASE("whole numbers are read as Python reads them") {
  CHECK(parse_int(" 1_0 ") == 10);
  CHECK(parse_int("+7") == 7);
  CHECK(parse_int("-3") == -3);
  CHECK(parse_int("007") == 7);
  for (const char* text :
       {"", " ", "1__0", "_1", "1_", "0x1", "1.0", "--1", "- 1", "1 2", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(!parse_int(text));
  }
}

TEST_CASE("floating numbers are finite and decimal") {
  CHECK(parse_double("0.1") == 0.1);
  CHECK(parse_double("1e-3") == 0.001);
  for (const char* text : {"", "inf", "nan", "0x1p3", "1,5", "1e999"}) {
    CAPTURE(text);
    CHECK(!parse_double(text));
  }
}

TEST_CASE("truth has the usual words") {
  for (const char* text : {"1", "true", "YES", "t", "on", "2"})
    CHECK(parse_bool(text) == true);
  for (const char* text : {"0", "False", "no", "F", "off"})
    CHECK(parse_bool(text) == false);
  for (const char* text : {"", "maybe", "tru"})
    CHECK(!parse_bool(text));
}

TEST_CASE("sizes take binary units") {
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("512M") == int64_t{512} << 20);
  CHECK(parse_size("1GiB") == int64_t{1} << 30);
  CHECK(parse_size("2kb") == 2048);
  for (const char* text : {"", "M", "1X", "-1", "1.5G", "9999999T", "1bib"}) {
    CAPTURE(text);
    CHECK(!parse_size(text));
  }
}

TEST_CASE("nnodes is N or MIN:MAX and says what is wrong") {
  CHECK(parse_nnodes("3")->min == 3);
  CHECK(parse_nnodes("1:4")->max == 4);
  CHECK(parse_nnodes("2:1").error().message == "the minimum is above the maximum");
  for (const char* text : {"1:2:3", "x", "0", "2:1", "", ":", "0:1", "-1"}) {
    CAPTURE(text);
    CHECK(!parse_nnodes(text));
  }
}

TEST_CASE("gpus are numbers, ranges and UUIDs, each once") {
  CHECK(*parse_gpus("2,4,7") == Strings{"2", "4", "7"});
  CHECK(*parse_gpus("0-2, 5") == Strings{"0", "1", "2", "5"});
  CHECK(*parse_gpus("GPU-abc-1") == Strings{"GPU-abc-1"});
  CHECK(parse_gpus("1,0-1").error().message == "device 1 is named twice");
  for (const char* text : {"", ",", "a", "1,", "3-1", "-1", "GPU-", "0-99999999"}) {
    CAPTURE(text);
    CHECK(!parse_gpus(text));
  }
}

TEST_CASE("a doubled comma is a comma inside a needle") {
  CHECK(parse_needles("1/1,zz") == Strings{"1/1", "zz"});
  CHECK(parse_needles("hello 0,,x") == Strings{"hello 0,x"});
  CHECK(parse_needles("") == Strings{""});
  CHECK(parse_needles("a,,,b") == Strings{"a,", "b"});
}

TEST_CASE("signals have names with and without SIG") {
  CHECK(signal_number("SIGTERM") == SIGTERM);
  CHECK(signal_number("USR1") == SIGUSR1);
  CHECK(!signal_number(""));
  CHECK(!signal_number("SIG"));
  CHECK(!signal_number("SIGFOO"));
}

}  // namespace muster
