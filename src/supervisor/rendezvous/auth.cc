// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "loop/check.h"

namespace muster {

namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::string hex(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<void> check_token(std::string_view token) {
  if (token.size() < kMinToken)
    return Error{0, "the token has " + std::to_string(token.size()) + " bytes; it needs " +
                        std::to_string(kMinToken) + " at least (openssl rand -hex 32 makes one)"};
  if (token.size() > kMaxToken)
    return Error{0, "the token has " + std::to_string(token.size()) + " bytes, more than " +
                        std::to_string(kMaxToken)};
  return {};
}

std::string new_nonce() {
  unsigned char bytes[kNonceBytes];
  size_t have = 0;
  while (have < sizeof bytes) {
    const ssize_t got = getrandom(bytes + have, sizeof bytes - have, 0);
    MUST(got > 0 || errno == EINTR);
    if (got > 0) have += static_cast<size_t>(got);
  }
  return hex(bytes);
}

bool is_nonce(std::string_view text) {
  return text.size() == 2 * kNonceBytes && std::all_of(text.begin(), text.end(), is_hex_digit);
}

std::string make_proof(std::string_view token, Prover prover, const Exchange& exchange) {
  if (token.empty()) return "";
  MUST(is_nonce(exchange.agent_nonce) && is_nonce(exchange.host_nonce));
  // Both nonces have one size and the run id comes last, so that no two exchanges read alike.
  std::string text =
      prover == Prover::kAgent ? "muster control 1: agent\n" : "muster control 1: host\n";
  text.append(exchange.agent_nonce).append(exchange.host_nonce).append(exchange.run_id);
  // Its configuration file is for programs that want it; ours is not to fail for what stands there.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  MUST(made != nullptr && size == kProofBytes);
  return hex({digest, kProofBytes});
}

bool is_proof(std::string_view proof, std::string_view token, Prover prover,
              const Exchange& exchange) {
  const std::string expected = make_proof(token, prover, exchange);
  if (proof.size() != expected.size()) return false;
  return expected.empty() || CRYPTO_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

}  // namespace muster
