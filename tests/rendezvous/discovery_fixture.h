// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loop/loop_test.h"
#include "supervisor/rendezvous/endpoint_discovery.h"

namespace muster {

// What one node's discovery has called back so far.
struct Finder {
  Loop& loop;
  std::vector<Discovery::Found> found;
  std::vector<std::string> steps;
  std::vector<Error> failures;
  std::vector<std::string> listened;  // "::" and its like, in the order of the attempts
  std::unique_ptr<Discovery> discovery;

  explicit Finder(Loop& the_loop) : loop(the_loop) {}

  ListenAt listen() {
    return [this](const std::string& address, int port) {
      listened.push_back(address);
      return StoreServer::listen(loop, address, port, {[](const std::string&) {}});
    };
  }

  Discovery::Callbacks callbacks() {
    return {[this](Discovery::Found one) { found.push_back(std::move(one)); },
            [this](const std::string& step) { steps.push_back(step); },
            [this](const Error& error) { failures.push_back(error); },
            {}};
  }

  // Looks until there is one more result; true if something was found.
  bool find() {
    const size_t before = found.size() + failures.size();
    discovery->find();
    CHECK(found.size() + failures.size() == before);  // never from inside the call
    REQUIRE(loop.run_until([&] { return found.size() + failures.size() > before; },
                           Milliseconds(20'000)));
    return failures.empty();
  }

  bool hosts() const { return !found.empty() && found.back().store != nullptr; }
};

}  // namespace muster
