// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/tail_ring.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("a tail ring holds the last bytes, whatever the pieces") {
  for (size_t piece : {1u, 7u, 1000u, 65'536u, 70'000u, 200'000u}) {
    TailRing ring;
    std::string all;
    for (int i = 0; all.size() < 150'000; ++i) {
      std::string bytes(piece, static_cast<char>('a' + i % 26));
      all += bytes;
      ring.append(bytes);
    }
    CHECK(ring.text() == all.substr(all.size() - TailRing::kLimit));
    for (size_t count : {0u, 1u, 1000u, 40'000u, 65'535u})
      CHECK(ring.last(count) == all.substr(all.size() - count));
  }
}

TEST_CASE("a tail ring that is not full holds everything") {
  TailRing ring;
  ring.append("ab");
  ring.append("");
  ring.append("c");
  CHECK(ring.text() == "abc");
  CHECK(ring.last(2) == "bc");
  CHECK(ring.last(5) == "abc");
}

}  // namespace muster
