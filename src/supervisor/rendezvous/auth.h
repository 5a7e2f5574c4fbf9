// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// How the two ends of a control connection show each other that they know the job's token without
// telling it: each proves with an HMAC-SHA256 over both sides' nonces, its role and the run id. So
// a proof is of use in one handshake alone and cannot be sent back to whoever made it. Without a
// token proofs are empty, and nothing here touches the cryptographic library.

// A shorter token could be found by trying: whoever connects gets a proof to try against.
inline constexpr size_t kMinToken = 16;
inline constexpr size_t kMaxToken = 4096;

enum class Prover { kAgent, kHost };

// The error says what is wrong with a token that a user gave, never the token.
Result<void> check_token(std::string_view token);

// 32 bytes that nobody can foresee, in hexadecimal digits.
std::string new_nonce();
bool is_nonce(std::string_view text);

struct Exchange {
  std::string_view run_id;
  std::string_view agent_nonce;
  std::string_view host_nonce;
};

// "" without a token, else 64 hexadecimal digits. Both nonces are nonces.
std::string make_proof(std::string_view token, Prover prover, const Exchange& exchange);

// In a time that does not depend on `proof`.
bool is_proof(std::string_view proof, std::string_view token, Prover prover,
              const Exchange& exchange);

}  // namespace muster
