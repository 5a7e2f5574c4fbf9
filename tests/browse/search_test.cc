// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/search.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "browse/browse_fixture.h"
#include "loop/timer.h"
#include "supervisor/browse/utf16_text.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

using Matches = std::vector<std::pair<int64_t, int64_t>>;

std::shared_ptr<const SearchPattern> pattern(const std::string& text, bool is_regex = false,
                                             bool case_sensitive = false) {
  auto compiled = SearchPattern::compile({text, is_regex, case_sensitive});
  REQUIRE(compiled.has_value());
  return *compiled;
}

struct SearchTest : BrowseTest {
  std::vector<std::string> paths;
  int64_t from = 0;
  int64_t to = INT64_MAX;
  std::vector<SearchHit> hits;
  LogSearch::State state;
  std::unique_ptr<LogSearch> search;

  std::string add(const std::string& text) {
    paths.push_back(dir.path + "/" + std::to_string(paths.size()) + ".log");
    std::ofstream(paths.back(), std::ios::binary) << text;
    return paths.back();
  }

  void start(std::shared_ptr<const SearchPattern> what, int context = 0, int64_t limit = 1'000) {
    hits.clear();
    state = {};
    std::vector<SearchPlace> places;
    for (const std::string& at : paths)
      places.push_back({at, from, to});
    const auto lines = paths.size() == 1 ? reader.log(paths[0]) : nullptr;
    search = LogSearch::start(reader.gate(), {std::move(what), context, limit, places, lines},
                              [this](std::vector<SearchHit> found, const LogSearch::State& now) {
                                CHECK(found.size() <= SearchWork::kHitsOfPiece);
                                for (SearchHit& hit : found)
                                  hits.push_back(std::move(hit));
                                state = now;
                              });
  }

  void find(std::shared_ptr<const SearchPattern> what, int context = 0, int64_t limit = 1'000) {
    start(std::move(what), context, limit);
    REQUIRE(run_until([&] { return state.done; }));
    CHECK(state.hits == std::ssize(hits));
  }
  void find(const std::string& text, int context = 0) { find(pattern(text), context); }
};

std::vector<std::string> texts(const std::vector<LogLine>& lines) {
  std::vector<std::string> all;
  for (const LogLine& line : lines)
    all.push_back(line.text);
  return all;
}

}  // namespace

TEST_SUITE("search patterns") {
  TEST_CASE("a text is taken as it is, an expression is not") {
    CHECK_FALSE(pattern("a.c")->find("abc\n", 0));
    CHECK(pattern("a.c", true)->find("abc\n", 0)->begin == 0);
    CHECK(pattern("(")->find("f(x)\n", 0)->begin == 1);
  }

  TEST_CASE("case matters when it is said to") {
    CHECK(pattern("error")->find("an ERROR\n", 0)->begin == 3);
    CHECK_FALSE(pattern("error", false, true)->find("an ERROR\n", 0));
    CHECK(pattern("\xC3\xA4")->find("\xC3\x84\n", 0).has_value());
  }

  TEST_CASE("no match goes over the end of a line") {
    for (const char* text : {"a\\s+b", "a[^x]b", "a\\nb", "(?s)a.b", "a\\W+b"})
      CHECK_FALSE(pattern(text, true)->find("a\nb\n", 0));
    CHECK_FALSE(pattern("a\nb")->find("a\nb\n", 0));
  }

  TEST_CASE("begin and end are those of lines") {
    CHECK(pattern("^b$", true)->find("ab\nb\nbc\n", 0)->begin == 3);
    CHECK(pattern("\\Ab\\z", true)->find("ab\nb\nbc\n", 0)->begin == 3);
    CHECK(pattern("^$", true)->find("a\n\nb\n", 0)->begin == 2);
    CHECK_FALSE(pattern("^$", true)->find("a\nb\n", 0));
  }

  TEST_CASE("what is wrong with an expression is said") {
    auto wrong = SearchPattern::compile({"a(b", true, false});
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().message == "the regular expression 'a(b' is not one: missing ): a(b");
    CHECK_FALSE(SearchPattern::compile({"", false, false}).has_value());
    CHECK_FALSE(SearchPattern::compile({"(a)\\1", true, false}).has_value());
    CHECK_FALSE(SearchPattern::compile({"((a{100}){100}){100}", true, false}).has_value());
    CHECK(SearchPattern::compile({std::string(SearchPattern::kMaxLength, 'x'), false, false})
              .has_value());
    CHECK_FALSE(
        SearchPattern::compile({std::string(SearchPattern::kMaxLength + 1, 'x'), false, false})
            .has_value());
  }

  TEST_CASE("all matches of a line, but no empty ones and not too many") {
    auto spans = pattern("a+", true)->matches("aa b a");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].end == 2);
    CHECK(spans[1].begin == 5);
    CHECK(pattern("a*", true)->matches("bbb").empty());
    CHECK(pattern("a")->matches(std::string(1'000, 'a')).size() == SearchPattern::kMaxMatches);
  }

  TEST_CASE("places are counted as browsers count them") {
    std::string text;
    CHECK(append_utf16_counted(text, "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") == 5);
    CHECK(append_utf16_counted(text, "\xFF\xC3") == 2);
    CHECK(text == "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBD\xEF\xBF\xBD");
  }
}

TEST_SUITE("search") {
  TEST_CASE_FIXTURE(SearchTest, "a hit says where it is") {
    add("one\ntwo\nthree two two\n");
    add("nothing\n");
    add("two");
    find("two");
    REQUIRE(hits.size() == 3);
    CHECK(hits[0].log == 0);
    CHECK(hits[0].line.offset == 4);
    CHECK(hits[0].line.number == 1);
    CHECK(hits[0].line.size == 3);
    CHECK(hits[0].matches == Matches{{0, 3}});
    CHECK(hits[1].line.text == "three two two");
    CHECK(hits[1].line.offset == 8);
    CHECK(hits[1].matches == Matches{{6, 9}, {10, 13}});
    CHECK(hits[2].log == 2);
    CHECK_FALSE(hits[2].line.ended);
    CHECK(state.bytes == state.total_bytes);
    CHECK(state.total_bytes == 22 + 8 + 3);
    CHECK_FALSE(state.truncated);
  }

  TEST_CASE_FIXTURE(SearchTest, "matches are in characters of the text that is shown") {
    add("\xF0\x9F\x98\x80 \xFF h\xC3\xA9llo x\n");
    find("H\xC3\xA9LLO");
    REQUIRE(hits.size() == 1);
    CHECK(hits[0].line.text == "\xF0\x9F\x98\x80 \xEF\xBF\xBD h\xC3\xA9llo x");
    CHECK(hits[0].matches == Matches{{5, 10}});
    CHECK(hits[0].line.size == 15);
  }

  TEST_CASE_FIXTURE(SearchTest, "the lines around a hit come with it") {
    add("0\n1\n2\nhit\n4\n5\n6\n");
    find("hit", 2);
    REQUIRE(hits.size() == 1);
    CHECK(texts(hits[0].before) == std::vector<std::string>{"1", "2"});
    CHECK(texts(hits[0].after) == std::vector<std::string>{"4", "5"});
    CHECK(hits[0].before[0].number == 1);
    CHECK(hits[0].before[0].offset == 2);
    CHECK(hits[0].after[1].number == 5);
    CHECK(hits[0].after[1].offset == 12);
    add("hit\nlast");
    find("hit", 2);
    REQUIRE(hits.size() == 2);
    CHECK(hits[1].before.empty());
    REQUIRE(hits[1].after.size() == 1);
    CHECK(hits[1].after[0].text == "last");
    CHECK_FALSE(hits[1].after[0].ended);
  }

  TEST_CASE_FIXTURE(SearchTest, "long lines beside a hit are found, and cut") {
    const std::string wide(20'000, 'x');
    add("first\n" + wide + "\nhit\n" + wide + "\nlast\n");
    find("hit", 2);
    REQUIRE(hits.size() == 1);
    REQUIRE(hits[0].before.size() == 2);
    CHECK(hits[0].before[0].text == "first");
    CHECK(hits[0].before[1].size == 20'000);
    CHECK(std::ssize(hits[0].before[1].text) == LogScan::kMaxContext);
    REQUIRE(hits[0].after.size() == 2);
    CHECK(hits[0].after[1].text == "last");
  }

  TEST_CASE_FIXTURE(SearchTest, "lines have the same numbers and offsets however many there are") {
    std::string text;
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < 300'000; ++i) {
      if (i % 9'973 == 0) offsets.push_back(std::ssize(text));
      text += i % 9'973 == 0 ? "needle " + std::to_string(i) + "\n" : numbered_line(i);
    }
    add(text);
    find("needle", 1);
    REQUIRE(hits.size() == offsets.size());
    for (size_t i = 0; i < hits.size(); ++i) {
      const auto number = static_cast<int64_t>(i) * 9'973;
      CHECK(hits[i].line.offset == offsets[i]);
      CHECK(hits[i].line.number == number);
      CHECK(hits[i].line.text == "needle " + std::to_string(number));
      REQUIRE(hits[i].after.size() == 1);
      CHECK(hits[i].after[0].text + "\n" == numbered_line(number + 1));
      CHECK(hits[i].before.size() == (i == 0 ? 0 : 1));
    }
  }

  TEST_CASE_FIXTURE(SearchTest, "a line of megabytes is one hit, shown around its first match") {
    std::string text = "short\n" + std::string(1'300'000, 'x') + "needle" +
                       std::string(1'300'000, 'y') + "needle" + std::string(100'000, 'z') +
                       "\nneedle\n";
    add(text);
    find("needle");
    REQUIRE(hits.size() == 2);
    CHECK(hits[0].line.offset == 6);
    CHECK(hits[0].line.number == 1);
    CHECK(std::ssize(hits[0].line.text) == LogScan::kMaxText);
    REQUIRE(hits[0].matches.size() == 1);
    const auto [begin, end] = hits[0].matches[0];
    CHECK(hits[0].line.text.substr(static_cast<size_t>(begin), 6) == "needle");
    CHECK(hits[0].line.skipped + begin == 1'300'000);
    CHECK(hits[1].line.number == 2);
    CHECK(hits[1].line.offset == std::ssize(text) - 7);
  }

  TEST_CASE_FIXTURE(SearchTest, "a match over the border of two blocks of a long line is found") {
    for (int64_t at = (512 << 10) - 8; at < (512 << 10) + 8; ++at) {
      paths.clear();
      add(std::string(static_cast<size_t>(at), 'x') + "needle" + std::string(600'000, 'x') + "\n");
      find("needle");
      CHECK(hits.size() == 1);
    }
  }

  TEST_CASE_FIXTURE(SearchTest, "each log gives its first hits early") {
    std::string much;
    for (int i = 0; i < 500'000; ++i)
      much += "a hit, and another and another\n";
    add(much);
    add(numbered_lines(0, 200'000) + "a hit\n");
    add("a hit\n");
    find(pattern("hit"), 0, 2'000);
    std::map<size_t, int> of_log;
    for (const SearchHit& hit : hits)
      ++of_log[hit.log];
    CHECK(of_log[1] == 1);
    CHECK(of_log[2] == 1);
    CHECK(state.truncated);
    CHECK(hits.size() == 2'000);
  }

  TEST_CASE_FIXTURE(SearchTest,
                    "a part of a log is searched by itself, and its lines keep their place") {
    path = add(numbered_lines(0, 100'000));
    const int64_t width = std::ssize(numbered_line(0));
    from = 50'000 * width;
    to = from + 10 * width;
    find("line");
    REQUIRE(hits.size() == 10);
    CHECK(hits[0].line.offset == from);
    CHECK(state.total_bytes == 10 * width);
    counted_tail(1);  // now the lines' numbers are known
    find("line");
    CHECK(hits[0].line.number == 50'000);
    CHECK(hits[9].line.number == 50'009);
    from += 3;  // the line that began before is not of this part
    find("line");
    CHECK(hits.size() == 9);
    CHECK(hits[0].line.number == 50'001);
    from = 200'000 * width;
    to = INT64_MAX;
    find("line");
    CHECK(hits.empty());
  }

  TEST_CASE_FIXTURE(SearchTest, "it stops at the limit and says whether there was more") {
    add("a\na\na\n");
    find(pattern("a"), 0, 2);
    CHECK(hits.size() == 2);
    CHECK(state.truncated);
    find(pattern("a"), 0, 3);
    CHECK(hits.size() == 3);
    CHECK_FALSE(state.truncated);
  }

  TEST_CASE_FIXTURE(SearchTest, "logs that are not there or cannot be read are no end of it") {
    paths = {dir.path + "/none.log", dir.path};
    add("");
    add("hit\n");
    find("hit");
    REQUIRE(hits.size() == 1);
    CHECK(hits[0].log == 3);
    REQUIRE(state.troubles.size() == 1);
    CHECK(state.troubles[0].find("is not a file") != std::string::npos);
  }

  TEST_CASE_FIXTURE(SearchTest, "nothing to search is done at once") {
    find("hit");
    CHECK(state.total_bytes == 0);
    CHECK(hits.empty());
  }

  TEST_CASE_FIXTURE(SearchTest, "while it is paused nothing is read") {
    std::string much;
    for (int i = 0; i < 1'000; ++i)
      much += "a hit\n";
    add(much);
    start(pattern("hit"));
    REQUIRE(run_until([&] { return !hits.empty(); }));
    search->set_paused(true);
    run_until([&] { return !loop.has_requests(); });
    const size_t before = hits.size();
    const int64_t pieces = reader.gate().pieces();
    loop.run_until([] { return false; }, Milliseconds(30));
    CHECK(hits.size() <= before + SearchWork::kHitsOfPiece);
    CHECK(reader.gate().pieces() <= pieces + 1);
    CHECK_FALSE(state.done);
    search->set_paused(false);
    REQUIRE(run_until([&] { return state.done; }));
    CHECK(hits.size() == 1'000);
  }

  TEST_CASE_FIXTURE(SearchTest, "a dropped search is silent and reads no more") {
    add(numbered_lines(0, 500'000));
    start(pattern("hit"));
    REQUIRE(run_until([&] { return reader.gate().pieces() > 0; }));
    search.reset();
    run_until([&] { return !loop.has_requests(); });
    const int64_t pieces = reader.gate().pieces();
    loop.run_until([] { return false; }, Milliseconds(20));
    CHECK(reader.gate().pieces() == pieces);
    CHECK_FALSE(state.done);
  }

  TEST_CASE_FIXTURE(SearchTest, "what is written after it began is not waited for") {
    add("hit\n");
    start(pattern("hit"));
    auto writing = Timer::repeat(loop, Milliseconds(1),
                                 [&] { std::ofstream(paths[0], std::ios::app) << "hit\n"; });
    REQUIRE(run_until([&] { return state.done; }));
    CHECK(hits.size() < 1'000);
  }

  TEST_CASE_FIXTURE(SearchTest,
                    "behind what a bounded log left out offsets, numbers and times go on") {
    paths = {path};
    auto file = LogFile::create_later(path, LogFile::kMinLimit);
    file->keep_times(times_path(path));
    constexpr int64_t kStart = 1'790'000'000'000'000;
    for (int64_t i = 0; i < 20'000; i += 100) {
      const std::string text = numbered_lines(i, i + 100);
      CHECK(file->append(text, kStart + i * 1'000).error == 0);
    }
    file->finish();
    find(pattern("line 00000(00010|19990)", true), 1);
    REQUIRE(hits.size() == 2);
    const int64_t width = std::ssize(numbered_line(0));
    for (const auto& [hit, number] : {std::pair{hits[0], 10}, {hits[1], 19'990}}) {
      CHECK(hit.line.number == number);
      CHECK(hit.line.offset == number * width);
      CHECK(hit.line.time_us >= kStart + (number - 200) * 1'000);
      CHECK(hit.line.time_us <= kStart + number * 1'000);
      REQUIRE(hit.before.size() == 1);
      CHECK(hit.before[0].text + "\n" == numbered_line(number - 1));
      CHECK(hit.after[0].number == number + 1);
    }
    find("left out");  // the marker is no line of the worker's
    CHECK(hits.empty());
  }

  TEST_CASE_FIXTURE(SearchTest, "an expression that is hard to match still ends") {
    std::string text;
    for (int i = 0; i < 20'000; ++i)
      text += std::string(50, 'a') + "\n";
    add(text);
    find(pattern("(a*)*(a*)*b", true));
    CHECK(hits.empty());
    CHECK(state.bytes == std::ssize(text));
  }
}

}  // namespace muster
