// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "loop/loop_test.h"
#include "store/bytes.h"
#include "store/server.h"
#include "store/test_peer.h"

namespace muster {

// A store server on loopback in the test's own loop, and the lines it has said.
struct ServerTest : LoopTest {
  std::vector<std::string> lines;
  std::unique_ptr<StoreServer> server;

  void listen(const std::string& address, StoreServer::Limits limits = {}) {
    auto listening = StoreServer::listen(
        loop, address, 0, {[this](const std::string& line) { lines.push_back(line); }}, limits);
    if (!listening) MESSAGE(listening.error().message);
    REQUIRE(listening.has_value());
    server = std::move(*listening);
  }

  ServerTest() { listen("127.0.0.1"); }

  TestPeer connect() { return TestPeer(loop, server->port()); }

  TestPeer greeted(uint32_t pid = 7) {
    TestPeer peer = connect();
    CHECK(peer.ask(request::validate().add(request::ping(pid)), 4) == Bytes().u32(pid).text);
    return peer;
  }
};

}  // namespace muster
