// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/unique_id.h"

#include <doctest/doctest.h>

#include <cstring>
#include <future>

#include "store/client.h"
#include "store/prefix_store.h"
#include "store/server_thread.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A table whose ids are numbered, so that no library is needed.
int ids_made = 0;
ncclResult_t numbered_id(ncclUniqueId* id) {
  std::memset(id->internal, 0, sizeof id->internal);
  std::snprintf(id->internal, sizeof id->internal, "id %d", ids_made++);
  return ncclSuccess;
}
ncclResult_t scalable(ncclComm_t*, int, int, int, ncclUniqueId*, ncclConfig_t*) {
  return ncclSuccess;
}

struct Meeting {
  ServerThread server;
  NcclTable nccl;

  Meeting() {
    ids_made = 0;
    nccl.GetUniqueId = numbered_id;
    nccl.CommInitRankScalable = scalable;
  }

  BackendPlan plan(int rank, int size, seconds time = seconds(20)) {
    auto client = StoreClient::connect({"127.0.0.1", server.port(), milliseconds(20'000), false});
    REQUIRE(client.has_value());
    BackendPlan plan{.rank = rank, .size = size};
    plan.world_ranks.reserve(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i)
      plan.world_ranks.push_back(10 + i);
    plan.store = std::make_shared<PrefixStore>("c", std::shared_ptr<Store>(std::move(*client)));
    plan.deadline = std::chrono::steady_clock::now() + time;
    return plan;
  }
};

std::string text(const ncclUniqueId& id) {
  return id.internal;
}

}  // namespace

TEST_CASE_FIXTURE(Meeting, "each rank gets the id that rank 0 made") {
  const Result<Ids> first = exchange_ids(nccl, plan(0, 3));
  const Result<Ids> other = exchange_ids(nccl, plan(2, 3));
  REQUIRE(first.has_value());
  REQUIRE(other.has_value());
  CHECK(ids_made == 1);
  CHECK(text(first->ids.at(0)) == "id 0");
  CHECK(text(other->ids.at(0)) == "id 0");
  CHECK_FALSE(other->grown);
}

TEST_CASE_FIXTURE(Meeting, "several roots make an id each and all ranks get all of them") {
  std::vector<BackendPlan> plans;
  plans.reserve(4);
  for (int rank = 0; rank < 4; ++rank)
    plans.push_back(plan(rank, 4));
  plans[0].options.init_roots = 2;  // rank 0 decides
  std::vector<std::future<Result<Ids>>> meeting;
  // Rank 0 first, so that the numbers are known: it waits for the other root.
  for (const BackendPlan& plan : plans) {
    meeting.push_back(std::async(std::launch::async, [&] { return exchange_ids(nccl, plan); }));
    if (plan.rank == 0) {
      const std::string keys[] = {"nccl/id/0"};
      REQUIRE(plans[1].store->wait(keys, milliseconds(20'000)).has_value());
    }
  }
  for (auto& rank : meeting) {
    const Result<Ids> ids = rank.get();
    REQUIRE(ids.has_value());
    REQUIRE(ids->ids.size() == 2);
    CHECK(text(ids->ids[0]) == "id 0");
    CHECK(text(ids->ids[1]) == "id 1");
  }
}

TEST_CASE("roots are spread over the ranks") {
  CHECK(root_rank(0, 4, 16) == 0);
  CHECK(root_rank(3, 4, 16) == 12);
  CHECK(root_rank(2, 3, 3) == 2);
}

TEST_CASE_FIXTURE(Meeting, "more roots than ranks are as many as ranks, without the function one") {
  BackendPlan alone = plan(0, 1);
  alone.options.init_roots = 99;
  CHECK(exchange_ids(nccl, alone)->ids.size() == 1);
  Meeting old;
  old.nccl.CommInitRankScalable = nullptr;
  BackendPlan first = old.plan(0, 2);
  first.options.init_roots = 2;
  CHECK(exchange_ids(old.nccl, first)->ids.size() == 1);
}

TEST_CASE_FIXTURE(Meeting, "a rank 0 that does not come is named by its number in the world") {
  const Result<Ids> ids = exchange_ids(nccl, plan(1, 2, seconds(0)));
  REQUIRE_FALSE(ids.has_value());
  CHECK(ids.error().code == ErrorCode::kTimeout);
  CHECK(ids.error().ranks == std::vector<int>{0});  // of the communicator
  CHECK(ids.error().message.find("rank 10") != std::string::npos);
}

TEST_CASE_FIXTURE(Meeting, "a store that stops answering is told, and rank 0 not blamed") {
  auto client = StoreClient::connect({.host = "127.0.0.1",
                                      .port = server.port(),
                                      .timeout = milliseconds(20'000),
                                      .least_reply_time = milliseconds(0)});
  REQUIRE(client.has_value());
  // No server answers in no time, and an answer that is late costs the connection.
  (*client)->set_timeout(milliseconds(0));
  while ((*client)->num_keys())
    continue;
  BackendPlan lost = plan(1, 2);
  lost.store = std::move(*client);
  const Result<Ids> ids = exchange_ids(nccl, lost);
  REQUIRE_FALSE(ids.has_value());
  CHECK(ids.error().code == ErrorCode::kStoreLost);
  CHECK(ids.error().ranks.empty());
  CHECK(ids.error().message.find("rank 10") == std::string::npos);
}

TEST_CASE_FIXTURE(Meeting, "a rank 0 that cannot is not waited for") {
  publish_failure(plan(0, 2),
                  Error{.code = ErrorCode::kUnavailable, .message = "no GPU is visible"});
  const Result<Ids> ids = exchange_ids(nccl, plan(1, 2));
  REQUIRE_FALSE(ids.has_value());
  CHECK(ids.error().message.find("rank 10 could not begin: no GPU is visible") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Meeting, "those who join a grown communicator learn that it is one") {
  ncclUniqueId id;
  numbered_id(&id);
  REQUIRE(publish_grown(plan(0, 3), id).has_value());
  const Result<Ids> ids = exchange_ids(nccl, plan(2, 3));
  REQUIRE(ids.has_value());
  CHECK(ids->grown);
  CHECK(text(ids->ids.at(0)) == "id 0");
}

TEST_CASE_FIXTURE(Meeting, "an id that is none is refused") {
  for (const std::string value : {"", "new", "new 1", "new x ", "new 1 short", "new 99999 ", "?"}) {
    CAPTURE(value);
    REQUIRE(plan(0, 2).store->set("nccl/id/0", value).has_value());
    const Result<Ids> ids = exchange_ids(nccl, plan(1, 2));
    REQUIRE_FALSE(ids.has_value());
    CHECK(ids.error().code == ErrorCode::kMismatch);
  }
}

}  // namespace muster::comm::detail
