// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/auth.h"

#include <doctest/doctest.h>

#include <set>

namespace muster {

namespace {

const std::string kToken = "a token of some length";
const std::string kOne(64, '1');
const std::string kTwo(64, '2');

}  // namespace

TEST_CASE("a proof is HMAC-SHA256 of role, nonces and run") {
  // From another implementation (Python's hmac), so that a second agent can be written by the
  // document alone.
  CHECK(make_proof(kToken, Prover::kAgent, {"run", kOne, kTwo}) ==
        "55ed422a05478af642af802fac70232079b763c42014462c3e70e8e69ceb34e0");
  CHECK(make_proof(kToken, Prover::kHost, {"run", kOne, kTwo}) ==
        "c94e455b5f49cd143a7607d409bc8f2ddc39f983a6d059f558f156905c58f5fa");
}

TEST_CASE("a proof holds for its token, role, nonces and run alone") {
  const std::string proof = make_proof(kToken, Prover::kAgent, {"run", kOne, kTwo});
  CHECK(is_proof(proof, kToken, Prover::kAgent, {"run", kOne, kTwo}));
  CHECK_FALSE(is_proof(proof, kToken + "!", Prover::kAgent, {"run", kOne, kTwo}));
  CHECK_FALSE(is_proof(proof, kToken, Prover::kHost, {"run", kOne, kTwo}));
  CHECK_FALSE(is_proof(proof, kToken, Prover::kAgent, {"run2", kOne, kTwo}));
  CHECK_FALSE(is_proof(proof, kToken, Prover::kAgent, {"run", kTwo, kOne}));
  CHECK_FALSE(is_proof("", kToken, Prover::kAgent, {"run", kOne, kTwo}));
  CHECK_FALSE(is_proof(proof + "0", kToken, Prover::kAgent, {"run", kOne, kTwo}));
  std::string close = proof;
  close.back() = close.back() == '0' ? '1' : '0';
  CHECK_FALSE(is_proof(close, kToken, Prover::kAgent, {"run", kOne, kTwo}));
}

TEST_CASE("without a token only the empty proof holds") {
  CHECK(make_proof("", Prover::kHost, {"run", "", ""}).empty());
  CHECK(is_proof("", "", Prover::kHost, {"run", "", ""}));
  CHECK_FALSE(is_proof("x", "", Prover::kHost, {"run", "", ""}));
}

TEST_CASE("nonces are 64 digits and never the same") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string nonce = new_nonce();
    CHECK(is_nonce(nonce));
    CHECK(seen.insert(nonce).second);
  }
  CHECK_FALSE(is_nonce(""));
  CHECK_FALSE(is_nonce(kOne.substr(1)));
  CHECK_FALSE(is_nonce(kOne.substr(1) + "g"));
}

TEST_CASE("a token is long enough not to be guessed and short enough to be one") {
  CHECK(check_token(std::string(kMinToken, 't')));
  CHECK(check_token(std::string(kMaxToken, 't')));
  CHECK(check_token("short").error().message ==
        "the token has 5 bytes; it needs 16 at least (openssl rand -hex 32 makes one)");
  CHECK(check_token(std::string(kMaxToken + 1, 't')).error().message ==
        "the token has 4097 bytes, more than 4096");
}

}  // namespace muster
