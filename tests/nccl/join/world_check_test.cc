// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/world_check.h"

#include <doctest/doctest.h>

#include <thread>

#include "nccl/join/place.h"
#include "store/client.h"
#include "store/server_thread.h"

namespace muster::comm::detail {

namespace {

Facts facts(std::vector<std::pair<std::string, std::string>> must_agree, std::string device = "") {
  return {std::move(must_agree), std::move(device)};
}

Error difference(const std::vector<Facts>& world) {
  const Result<void> compared = compare_facts(world);
  REQUIRE_FALSE(compared.has_value());
  CHECK(compared.error().code == ErrorCode::kMismatch);
  return compared.error();
}

}  // namespace

TEST_CASE("a world that agrees is good, with a device for each") {
  CHECK(compare_facts(std::vector<Facts>{}).has_value());
  CHECK(compare_facts(std::vector<Facts>{facts({{"a", "1"}}, "gpu0"), facts({{"a", "1"}}, "gpu1"),
                                         facts({{"a", "1"}}, ""), facts({{"a", "1"}}, "")})
            .has_value());
}

TEST_CASE("what differs is named with its values and their ranks, the many before the few") {
  const std::vector<Facts> world = {facts({{"nccl version", "2.28.9"}}),
                                    facts({{"nccl version", "2.27.3"}}),
                                    facts({{"nccl version", "2.28.9"}}),
                                    facts({{"nccl version", "2.28.9"}, {"NCCL_PROTO", "LL"}})};
  const Error error = difference(world);
  CHECK(error.message ==
        "nccl version is '2.28.9' on ranks 0 and 2-3 and '2.27.3' on rank 1; "
        "NCCL_PROTO is not set on ranks 0-2 and 'LL' on rank 3");
  CHECK(error.ranks == std::vector<int>{1, 3});
}

TEST_CASE("two ranks on one device are named, with what to set") {
  const Error error = difference({facts({}, "GPU-1 of node7\nx"), facts({}, "GPU-1 of node7\ny"),
                                  facts({}, "GPU-1 of node7\nx")});
  CHECK(error.message ==
        "ranks 0 and 2 use the same device, GPU-1 of node7: set CommunicatorOptions::device, "
        "LOCAL_RANK or CUDA_VISIBLE_DEVICES");
  CHECK(error.ranks == std::vector<int>{0, 2});
}

TEST_CASE("a message lists so many differences") {
  Facts one, other;
  for (size_t i = 0; i < kMaxNamedDifferences + 3; ++i) {
    one.must_agree.emplace_back("v" + std::to_string(i), "1");
    other.must_agree.emplace_back("v" + std::to_string(i), "2");
  }
  CHECK(difference({one, other}).message.ends_with("; and 3 more"));
}

TEST_CASE("facts travel as bytes, and anything else is refused") {
  const Facts one = facts({{"a", "1"}, {"", std::string(5'000, 'x')}}, "gpu");
  const Result<Facts> back = Facts::decode(one.encode());
  REQUIRE(back.has_value());
  CHECK(back->device == "gpu");
  CHECK(back->must_agree[0] == one.must_agree[0]);
  CHECK(back->must_agree[1].second == std::string(4'096, 'x'));  // what is too long is cut
  const std::string bytes = one.encode();
  CHECK_FALSE(Facts::decode("").has_value());
  CHECK_FALSE(Facts::decode(bytes.substr(0, bytes.size() - 1)).has_value());
  CHECK_FALSE(Facts::decode(std::string(16, '\xff')).has_value());
  Facts many;
  many.must_agree.resize(kMaxFacts);
  CHECK(Facts::decode(many.encode()).has_value());
  many.must_agree.resize(kMaxFacts + 1);
  CHECK_FALSE(Facts::decode(many.encode()).has_value());
}

TEST_CASE("a rank's own facts hold what it is made of and was told") {
  CommunicatorOptions options;
  options.checked = true;
  const Facts own = own_facts(Backend::kGloo, options, 0);
  using Pair = std::pair<std::string, std::string>;
  CHECK(own.must_agree[0] == Pair("the version of muster::comm", MUSTER_VERSION));
  CHECK(own.must_agree[1] == Pair("checked mode", "on"));
  CHECK(own.device.empty());
}

TEST_CASE("through a store everybody hears the same of what differs") {
  const ServerThread server;
  constexpr int kRanks = 5;
  std::vector<std::thread> ranks;
  ranks.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      auto store = StoreClient::connect({.host = "127.0.0.1", .port = server.port()});
      REQUIRE(store.has_value());
      const Facts own = facts({{"mode", rank == 3 ? "odd" : "even"}});
      const Result<void> compared =
          compare_world(**store, own, rank, kRanks, "making it",
                        std::chrono::steady_clock::now() + std::chrono::seconds(20));
      REQUIRE_FALSE(compared.has_value());
      CHECK(compared.error().message ==
            "making it: mode is 'even' on ranks 0-2 and 4 and 'odd' on rank 3");
      CHECK(compared.error().ranks == std::vector<int>{3});
      CHECK(compared.error().code == ErrorCode::kMismatch);
    });
  for (std::thread& rank : ranks)
    rank.join();
}

}  // namespace muster::comm::detail
