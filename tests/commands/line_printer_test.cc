// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/line_printer.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>

#include "supervisor/commands/keys.h"
#include "supervisor/commands/terminal_text.h"

namespace muster {

namespace {

ShownLine line(std::string text) {
  ShownLine made;
  made.log = {1, 3, "stderr"};
  made.offset = 40;
  made.number = 7;
  made.time_us = int64_t{1'795'953'600} * 1'000'000 + 123'456;
  made.size = static_cast<int64_t>(text.size());
  made.text = std::move(text);
  return made;
}

}  // namespace

TEST_CASE("a line has its rank in front, and its time if asked for") {
  setenv("TZ", "UTC", 1);
  tzset();
  LinePrinter::Settings settings;
  CHECK(LinePrinter(settings).text(line("hello")) == "[3]: hello\n");
  CHECK(LinePrinter(settings).context(line("hello")) == "[3]- hello\n");
  settings.timestamps = true;
  CHECK(LinePrinter(settings).text(line("x")) == "2026-11-29T12:00:00.123 [3]: x\n");
  ShownLine untimed = line("x");
  untimed.time_us = 0;
  CHECK(LinePrinter(settings).text(untimed) == "----------------------- [3]: x\n");
  settings.timestamps = settings.prefix = false;
  CHECK(LinePrinter(settings).text(line("x")) == "x\n");
}

TEST_CASE("of a line that was redrawn the last state is shown") {
  CHECK(last_state("10%\r20%\r") == "20%");
  CHECK(last_state("10%\r20%") == "20%");
  CHECK(last_state("\r\r") == "");
  CHECK(last_state("plain\r") == "plain");
  CHECK(LinePrinter({}).text(line("10%\r20%\r")) == "[3]: 20%\n");
  LinePrinter::Settings bytes;
  bytes.prefix = false;
  CHECK(LinePrinter(bytes).text(line("10%\r20%")) == "10%\r20%\n");
}

TEST_CASE("of a line that is too long its beginning is shown, and how much is missing") {
  ShownLine cut = line("begin");
  cut.size = 1'000'005;
  CHECK(LinePrinter({}).text(cut) == "[3]: begin [muster: 1000000 more bytes]\n");
  cut.text = "90%\r100%";
  CHECK(LinePrinter({}).text(cut) == "[3]: 100%\n");
}

TEST_CASE("as JSON a line is one object, whatever is in it") {
  LinePrinter::Settings settings;
  settings.json = true;
  CHECK(LinePrinter(settings).text(line("a\"\xFF\x1b\n")) ==
        "{\"attempt\":1,\"rank\":3,\"stream\":\"stderr\",\"offset\":40,\"number\":7,"
        "\"time_us\":1795953600123456,\"size\":5,\"text\":\"a\\\"\xEF\xBF\xBD\\u001b\\n\"}\n");
  CHECK(LinePrinter(settings).context(line("x")).find("\"context\":true") != std::string::npos);
  CHECK(LinePrinter(settings).separator().empty());
}

TEST_CASE("matches are coloured in their place, and only there") {
  LinePrinter::Settings settings;
  settings.prefix = false;
  settings.colour = settings.terminal = true;
  CHECK(LinePrinter(settings).text(line("ab\x1b[2Jcd"), {{0, 1}, {6, 7}}) ==
        "\x1b[1;31ma\x1b[0mb [2J\x1b[1;31mc\x1b[0md\x1b[0m\n");
  // Places that cannot be are left alone.
  CHECK(LinePrinter(settings).text(line("ab"), {{1, 9}, {2, 1}}) == "ab\n");
}

TEST_CASE("a terminal gets colours and nothing else that it would act on") {
  CHECK(only_colours("plain \xC3\xA4\ttab") == "plain \xC3\xA4\ttab");
  CHECK(only_colours("\x1b[1;31mred\x1b[0m") == "\x1b[1;31mred\x1b[0m");
  for (const char* hostile : {
           "\x1b[2J",
           "\x1b[10A",
           "\x1b[?1049h",
           "\x1b[6n",  // screen, cursor, reports
           "\x1b]0;title\x07",
           "\x1b]52;c;aGk=\x1b\\",  // title, clipboard
           "\x1bP+q\x1b\\",
           "\x1b_x\x1b\\",
           "\x1b^x\x07",  // strings
           "\x1b"
           "c",
           "\x1b(0",
           "\x1b#8",
           "\x1b",  // reset, character sets
           "\x07",
           "\x08",
           "\x0e",
           "\x7f",
           "\r",  // bytes
           "\xC2\x9B"
           "2J",
           "\x1b[1;3",  // in one character; cut off
           "\x1b[>4m",
           "\x1b[?5m",  // looks like a colour
       }) {
    CAPTURE(hostile);
    const std::string shown = only_colours(hostile);
    CHECK(shown.find('\x1b') == std::string::npos);
    CHECK(shown.find('\x9b') == std::string::npos);
    for (char c : shown)
      CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
  CHECK(only_colours("a\x1b]52;c;never ends") == "a");
}

TEST_CASE("keys are told from the sequences that terminals send") {
  CHECK(keys_in("q") == std::vector{Key::kQuit});
  CHECK(keys_in("\033[A\033OBjk") == std::vector{Key::kUp, Key::kDown, Key::kDown, Key::kUp});
  CHECK(keys_in("\033[5~ \033[6~") == std::vector{Key::kPageUp, Key::kPageDown, Key::kPageDown});
  CHECK(keys_in("gG\033[H\033[F") == std::vector{Key::kHome, Key::kEnd, Key::kHome, Key::kEnd});
  // No letter of a sequence is a key.
  CHECK(keys_in("\033[1;2q\033[200~x\033q\033").empty());
}

}  // namespace muster
