// SPDX-License-Identifier: Apache-2.0
#include "store/greeting.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "store/legacy.h"

namespace muster {

namespace {

// For the answer in 1.13's way: who closed the connection by chance may not answer at all.
constexpr std::chrono::milliseconds kLegacyTime{5'000};

Result<Greeted> greet_current(const std::string& host, int port, Deadline deadline) {
  Result<Connection> connection = dial(host, port, deadline);
  if (!connection) return connection.error();
  // In one write: PyTorch's server drops a client whose first five bytes come in pieces.
  const uint32_t nonce = static_cast<uint32_t>(getpid()) | kPingMark;
  std::string hello(1, static_cast<char>(Query::kValidate));
  append_int(hello, kStoreMagic);
  hello += static_cast<char>(Query::kPing);
  append_int(hello, nonce);
  if (Result<void> sent = connection->send(hello, deadline); !sent) return sent.error();
  Result<uint32_t> echo = connection->receive_int<uint32_t>(deadline);
  if (!echo) return echo.error();
  if (*echo != nonce) return Error{EPROTO, "the server does not speak the store protocol"};
  return Greeted{std::move(*connection), Dialect::kCurrent};
}

// Asks something that changes nothing.
Result<Greeted> greet_legacy(const std::string& host, int port, Deadline deadline) {
  Result<Connection> connection = dial(host, port, deadline);
  if (!connection) return connection.error();
  const std::string query(1, static_cast<char>(*legacy_number(Query::kGetNumKeys)));
  if (Result<void> sent = connection->send(query, deadline); !sent) return sent.error();
  Result<int64_t> keys = connection->receive_int<int64_t>(deadline);
  if (!keys) return keys.error();
  return Greeted{std::move(*connection), Dialect::kLegacy};
}

}  // namespace

Result<Greeted> greet(const std::string& host, int port, Deadline deadline) {
  Result<Greeted> current = greet_current(host, port, deadline);
  if (current || current.error().code != ECONNRESET) return current;
  Result<Greeted> legacy = greet_legacy(host, port, std::min(deadline, deadline_in(kLegacyTime)));
  return legacy ? std::move(legacy) : std::move(current);
}

}  // namespace muster
