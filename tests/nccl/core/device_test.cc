// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "nccl/core/fake_backend.h"
#include "nccl/join/store_host.h"
#include "store/client.h"
#include "store/prefix_store.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  std::shared_ptr<Script> script = [] {
    auto made = std::make_shared<Script>();
    made->device = true;
    return made;
  }();
  Communicator all = fake_communicator(script, {}, Backend::kNccl);
  std::vector<float> numbers = std::vector<float>(8);
  Buffer buffer = Buffer::device(numbers.data(), numbers.size(), DataType::kFloat32, nullptr);
};

// Waits until the watcher has seen the end, with nobody asking.
bool ends_by_itself(const Communicator& communicator) {
  for (const auto end = std::chrono::steady_clock::now() + seconds(20);
       std::chrono::steady_clock::now() < end; std::this_thread::yield())
    if (!communicator.status()) return true;
  return false;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "device memory: a call returns at once, wait() waits for the device") {
  script->hold();
  Work work = all.all_reduce(buffer);
  CHECK(!work.test());
  const Result<void> soon = work.wait(milliseconds(5));
  REQUIRE(!soon);
  CHECK(soon.error().code == ErrorCode::kTimeout);
  CHECK(all.status().has_value());  // it goes on
  script->release();
  CHECK(work.wait().has_value());
  CHECK(work.test());
}

TEST_CASE_FIXTURE(Fixture, "device memory: a barrier waits") {
  CHECK(all.barrier().test());
  CHECK(script->calls() == std::vector<std::string>{"start barrier"});
}

TEST_CASE_FIXTURE(Fixture, "device memory: an error that nobody waits for ends the communicator") {
  script->hold();
  static_cast<void>(all.broadcast(buffer, 2));
  script->answer(Error{ErrorCode::kPeerLost, "remote process exited", {2}});
  script->release();
  REQUIRE(ends_by_itself(all));
  const Result<void> later = all.all_reduce(buffer).wait();
  REQUIRE(!later);
  CHECK(later.error().code == ErrorCode::kPeerLost);
  CHECK(later.error().ranks == std::vector<int>{6});
  CHECK(later.error().message.find("broadcast #1 (32 B float32, root 6) of communicator world: "
                                   "rank 6 lost; remote process exited") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "device memory: the deadline is kept though nobody waits") {
  script->hold();
  Work work = all.all_reduce(buffer, ReduceOp::kSum, {.timeout = milliseconds(30)});
  REQUIRE(ends_by_itself(all));
  // The operation ends after its communicator: when the device has let go of the memory.
  CHECK(work.wait().error().code == ErrorCode::kTimeout);
  CHECK(work.test());
  CHECK(script->count("stop") == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "device memory: many deadlines at once are kept though nobody is heard") {
  constexpr int kCommunicators = 16;
  const auto host = StoreHost::listen(0).value();
  std::vector<std::shared_ptr<Script>> scripts;
  std::vector<Communicator> communicators;
  for (int i = 0; i < kCommunicators; ++i) {
    auto client = StoreClient::connect({.host = "127.0.0.1", .port = host->port()});
    REQUIRE(client);
    scripts.push_back(std::make_shared<Script>());
    scripts.back()->device = true;
    scripts.back()->hold();
    communicators.push_back(
        fake_communicator(scripts.back(), {}, Backend::kNccl,
                          std::make_shared<PrefixStore>(std::to_string(i), std::move(*client))));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (Communicator& each : communicators)
    static_cast<void>(each.all_reduce(buffer, ReduceOp::kSum, {.timeout = milliseconds(100)}));
  for (const auto& each : scripts)
    CHECK(each->wait_for("stop"));
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(1500));  // not 150 ms for each
  const Result<void> later = communicators[0].all_reduce(buffer).wait();
  REQUIRE(!later);
  CHECK(later.error().message.ends_with("timeout after 100 ms; nothing is heard of ranks 5-6"));
  CHECK(later.error().ranks == std::vector<int>{5, 6});
}

TEST_CASE_FIXTURE(Fixture, "device memory: so many operations are in flight and no more") {
  script->hold();
  const OpOptions options{.timeout = seconds(30)};
  for (int i = 0; i < 4096; ++i)
    static_cast<void>(all.all_reduce(buffer, ReduceOp::kSum, options));
  Work more = all.all_reduce(buffer, ReduceOp::kSum, {.timeout = milliseconds(20)});
  REQUIRE(more.test());
  CHECK(more.wait().error().message.find("too many operations") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "device memory: close waits for what is in flight") {
  script->hold();
  Work work = all.all_reduce(buffer);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(20));  // the other order passes as well
    script->release();
  });
  CHECK(all.close().has_value());
  CHECK(work.wait().has_value());
  CHECK(script->count("close") == 1);
  other.join();
}

TEST_CASE_FIXTURE(Fixture, "abort ends what is in flight on the device") {
  script->hold();
  Work work = all.all_reduce(buffer);
  CHECK(all.abort("enough").has_value());
  CHECK(work.test());
  CHECK(work.wait().error().message ==
        "all_reduce #1 (32 B float32) of communicator world: aborted: enough");
}

TEST_CASE_FIXTURE(Fixture, "abort returns by its deadline whatever the backend does") {
  script->hold(true);
  Work work = all.all_reduce(buffer);
  const auto begin = std::chrono::steady_clock::now();
  const Result<void> aborted = all.abort("enough", milliseconds(100));
  CHECK(std::chrono::steady_clock::now() - begin < seconds(5));
  REQUIRE(!aborted);
  CHECK(aborted.error().code == ErrorCode::kTimeout);
  CHECK(script->count("abort") == 1);
  script->release();
}

}  // namespace muster::comm::detail
