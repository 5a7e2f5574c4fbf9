// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/text_pattern.h"

#include <doctest/doctest.h>
#include <time.h>

namespace muster {

TEST_CASE("a pattern is plain text, stars and a start") {
  CHECK(match_text("b", "abc"));
  CHECK_FALSE(match_text("d", "abc"));
  CHECK(match_text("a*c", "xabbcx"));
  CHECK_FALSE(match_text("c*a", "abc"));
  CHECK(match_text("^ab", "abc"));
  CHECK_FALSE(match_text("^b", "abc"));
  CHECK(match_text("^a*c", "abc"));
  CHECK(match_text("ab*bc", "abbc"));
  CHECK_FALSE(match_text("ab*bc", "abc"));  // pieces do not overlap
  CHECK(match_text("", "abc"));
  CHECK_FALSE(match_text("a", ""));
  CHECK(match_text("*", ""));
}

TEST_CASE("ranks are read where the pattern says") {
  CHECK(match_text("Rank # failed", "[Rank 0]: Rank 2 failed")->ranks == "2");
  CHECK(match_text("ranks [#] lag", "Rank 1: ranks [3, 5, 10] lag")->ranks == "3,5,10");
  CHECK(match_text("ranks # lost", "x: ranks 0-2, 4 and 7 lost")->ranks == "0-2,4,7");
  CHECK_FALSE(match_text("rank # lost", "rank x lost"));
  CHECK_FALSE(match_text("rank # lost", "rank  lost"));
}

TEST_CASE("a very long list of ranks is cut between two numbers") {
  std::string list;
  for (int i = 1000; i < 2000; ++i)
    list += (list.empty() ? "" : ", ") + std::to_string(i);
  const std::string ranks = match_text("[#]", "[" + list + "]")->ranks;
  CHECK(ranks.size() <= 200);
  CHECK(ranks.ends_with("1039"));
}

TEST_CASE("the work is the line's length times the pattern's, not its square") {
  const std::string line(1'000'000, 'a');
  const clock_t before = clock();
  CHECK_FALSE(match_text("a*a*a*a*b", line));
  CHECK_FALSE(match_text("aaaaaaaaaaaaaaaaaab", line));
  CHECK_FALSE(match_text("a#b", line));
  CHECK_FALSE(match_text("#b", line));
  CHECK(clock() - before < 5 * CLOCKS_PER_SEC);
}

}  // namespace muster
