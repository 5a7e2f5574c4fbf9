// SPDX-License-Identifier: Apache-2.0
//
// The store without sockets. The first byte chooses what the rest is:
//   even: one connection's bytes. They are fed whole to one store and in pieces to another; replies
//         and contents must be the same.
//   odd:  a script for four connections that share a store: a byte names the connection and what
//         happens to it, then come the bytes it sends.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loop/check.h"
#include "store/fake_store.h"

namespace muster {

namespace {

// Small, so that the fuzzer reaches each of them.
constexpr WireLimits kLimits{64, 512, 16, 2048};
constexpr size_t kClients = 4;

void check_contents(const StoreState& state) {
  uint64_t bytes = 0;
  for (const auto& [key, value] : state.table.values())
    bytes += Table::kEntryOverhead + key.size() + value.size();
  MUST(state.table.bytes() >= bytes);
  state.waits.for_each([&](const Waiter& waiter) { MUST(!waiter.keys.empty()); });
}

void compare_whole_with_pieces(std::string_view bytes) {
  FakeStore whole, pieces;
  whole.state.wire_limits = pieces.state.wire_limits = kLimits;
  whole.state.strangers = pieces.state.strangers = true;
  auto& one = whole.connect();
  auto& other = pieces.connect();
  one.feed(std::string(bytes));
  size_t step = 0;
  for (size_t at = 0; at < bytes.size() && other.open; at += step) {
    step = 1 + (static_cast<uint8_t>(bytes[at]) + at) % 7;
    other.feed(std::string(bytes.substr(at, step)));
  }
  MUST(one.open == other.open);
  MUST(one.received == other.received);
  MUST(one.session->why() == other.session->why());
  MUST(one.session->stranger() == other.session->stranger());
  if (one.session->stranger())
    MUST(one.session->take_bytes().starts_with(other.session->take_bytes()));
  MUST(whole.state.table.values() == pieces.state.table.values());
  MUST(whole.state.table.bytes() == pieces.state.table.bytes());
  MUST(whole.state.waits.size() == pieces.state.waits.size());
  check_contents(whole.state);
}

void run_script(std::string_view script) {
  FakeStore store;
  store.state.wire_limits = kLimits;
  FakeStore::Client* clients[kClients] = {};
  while (!script.empty()) {
    const auto op = static_cast<uint8_t>(script[0]);
    script.remove_prefix(1);
    FakeStore::Client*& client = clients[op % kClients];
    if (client == nullptr) client = (op & 4) != 0 ? &store.greeted() : &store.connect();
    client->full_at = (op & 8) != 0 ? 16 : SIZE_MAX;
    client->max_unread = (op & 16) != 0 ? 4096 : SIZE_MAX;
    const size_t size = std::min<size_t>(script.size(), op >> 4);
    client->feed(std::string(script.substr(0, size)));
    script.remove_prefix(size);
    if (op % 3 == 0) client->take();
    check_contents(store.state);
    if (client->open && op != 0xFF) continue;
    store.disconnect(*client);
    client = nullptr;
  }
  for (FakeStore::Client* client : clients)
    if (client != nullptr) store.disconnect(*client);
  MUST(store.state.waits.empty());
  MUST(store.state.watches.empty());
}

}  // namespace

}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    muster::compare_whole_with_pieces(rest);
  } else {
    muster::run_script(rest);
  }
  return 0;
}
