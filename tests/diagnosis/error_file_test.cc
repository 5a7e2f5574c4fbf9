// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/error_file.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("the full form gives the message and the call stack") {
  ErrorFile file = parse_error_file(
      R"({"message": {"message": "ValueError: bad\nmore", "extraInfo": {"py_callstack":
      "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nValueError: bad\n",
      "timestamp": "1700000000"}}})");
  CHECK(file.form == ErrorFile::Form::kFull);
  CHECK(file.message == "ValueError: bad");
  CHECK(file.callstack.size() == 3);
  CHECK(file.callstack.back() == "ValueError: bad");
}

TEST_CASE("the text form gives the message") {
  ErrorFile file = parse_error_file(R"({"message": "plain text"})");
  CHECK(file.form == ErrorFile::Form::kText);
  CHECK(file.message == "plain text");
}

TEST_CASE("a damaged error file becomes a problem, never more") {
  for (std::string_view text : {"", "\n", "{", R"({"message": {"message": "x")", "[]", "null", "{}",
                                "\xFF\xFE", R"({"message": 3})", R"({"error": "x"})"}) {
    CAPTURE(text);
    ErrorFile file = parse_error_file(text);
    CHECK(file.form == ErrorFile::Form::kUnreadable);
    CHECK_FALSE(file.problem.empty());
  }
}

TEST_CASE("missing or wrong keys inside the message leave it empty") {
  ErrorFile no_extra = parse_error_file(R"({"message": {"message": "E: x"}})");
  CHECK(no_extra.form == ErrorFile::Form::kFull);
  CHECK(no_extra.message == "E: x");
  CHECK(no_extra.callstack.empty());
  ErrorFile wrong = parse_error_file(R"({"message": {"message": 1, "extraInfo": [2]}})");
  CHECK(wrong.form == ErrorFile::Form::kFull);
  CHECK(wrong.message.empty());
}

TEST_CASE("names of C++ in the stack become readable, what is none stays") {
  ErrorFile file = parse_error_file(
      R"({"message": {"message": "m", "extraInfo": {"py_callstack":
      "  _ZN5Model4stepEi in t+0x1\n  _Znonsense in t+0x2\n  _Z1fv\n  main in _ZN5Model4stepEi"}}})");
  REQUIRE(file.callstack.size() == 4);
  CHECK(file.callstack[0] == "  Model::step(int) in t+0x1");
  CHECK(file.callstack[1] == "  _Znonsense in t+0x2");
  CHECK(file.callstack[2] == "  f()");
  CHECK(file.callstack[3] == "  main in _ZN5Model4stepEi");
  CHECK_FALSE(file.native());
}

TEST_CASE("text of an error file is made fit to show") {
  ErrorFile file = parse_error_file("{\"message\": \"\\u001b[31mred\\nnext\"}");
  CHECK(file.message == "red");
}

}  // namespace muster
