// SPDX-License-Identifier: Apache-2.0
// The real libraries, as far as they go without a GPU: skipped where they are not installed.
#include <doctest/doctest.h>
#include <muster/comm/world.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "nccl/cuda/device.h"
#include "nccl/cuda/trouble.h"
#include "nccl/cuda/unique_id.h"
#include "nccl/gloo/ranks.h"
#include "skip.h"

namespace muster::comm::detail {
namespace {

using std::chrono::seconds;

std::string agreed(const std::string& name) {
  for (const auto& [fact, value] : nccl_must_agree()) {
    if (fact == name) return value;
  }
  return "(not told)";
}

// Why the real libraries cannot be tested; asked in a process of its own, since they stay opened.
std::string nothing_to_test(bool driver_wanted) {
  std::string reason;
  if (const Result<const NcclTable*> nccl = nccl_table(); !nccl) return nccl.error().message;
  const Result<const CudaTable*> cuda = cuda_table();
  if (!cuda) return cuda.error().message;
  int driver = 0;
  (*cuda)->DriverGetVersion(&driver);
  if ((driver != 0) != driver_wanted) return driver ? "there is a driver" : "there is no driver";
  return {};
}

// The function in processes with the real libraries. NCCL's memory that it never frees is not ours.
void on_real_ranks(int size, const std::function<void(const RankPlace&)>& function) {
  run_ranks(size, [&](const RankPlace& place) {
    unsetenv("MUSTER_NCCL_LIBRARY");
    unsetenv("MUSTER_CUDART_LIBRARY");
    if (const std::string reason = nothing_to_test(false); !reason.empty()) {
      if (place.rank == 0) say_skipped("the real NCCL without a driver: " + reason);
      return;
    }
    function(place);
  });
}

void expect_says(const std::string& message, const std::string& part) {
  expect(message.find(part) != std::string::npos, "says: " + message);
}

}  // namespace

TEST_CASE("the environment that must agree is told") {
  setenv("NCCL_PROTO", "LL", 1);
  CHECK(agreed("NCCL_PROTO") == "LL");
  unsetenv("NCCL_PROTO");
  CHECK(agreed("NCCL_PROTO").empty());
}

TEST_CASE("the real NCCL says its version, which has what the headers have") {
  on_real_ranks(1, [](const RankPlace&) {
    const NcclTable& nccl = *nccl_table().value();
    expect(agreed("nccl version") == nccl_version_text(nccl.version), "what must agree");
    expect(nccl.version >= kOldestNccl, nccl_version_text(nccl.version));
    expect((nccl.CommSplit != nullptr) == (nccl.version >= NCCL_VERSION(2, 18, 0)), "split");
    expect((nccl.CommShrink != nullptr) == (nccl.version >= NCCL_VERSION(2, 27, 0)), "shrink");
    expect((nccl.CommRevoke != nullptr) == (nccl.version >= NCCL_VERSION(2, 28, 0)), "revoke");
    expect((nccl.CommGrow != nullptr) == (nccl.version >= NCCL_VERSION(2, 29, 0)), "grow");
  });
}

TEST_CASE("the real NCCL's unique id gets to the other process through the store") {
  on_real_ranks(2, [](const RankPlace& place) {
    const Ids ids = exchange_ids(*nccl_table().value(), place.plan()).value();
    const std::string bytes(ids.ids.at(0).internal, sizeof ids.ids.at(0).internal);
    expect(bytes != std::string(bytes.size(), '\0'), "an id");
    const auto store = place.store("seen");
    expect(store->set(std::to_string(place.rank), bytes).has_value(), "set");
    const auto other = store->get(std::to_string(1 - place.rank));
    expect(other.has_value() && *other == bytes, "both have the same");
  });
}

TEST_CASE("the real NCCL's failure without a driver is told with its cause") {
  on_real_ranks(1, [](const RankPlace&) {
    const NcclTable& nccl = *nccl_table().value();
    ncclUniqueId id;
    expect(nccl.GetUniqueId(&id) == ncclSuccess, "an id");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = nullptr;
    const ncclResult_t result = nccl.CommInitRankConfig(&comm, 1, id, 0, &config);
    expect(result == ncclUnhandledCudaError, "result " + std::to_string(result));
    const Error error = nccl_error(result, "ncclCommInitRankConfig");
    expect(error.code == ErrorCode::kUnavailable, to_string(error.code));
    expect(error.nccl_result == ncclUnhandledCudaError, "its number");
    expect_says(error.message, "ncclCommInitRankConfig: unhandled cuda error");
    expect_says(error.message, "usually: there is no NVIDIA driver");
  });
}

TEST_CASE("without a driver a world works, and its NCCL communicator fails in one sentence") {
  std::string folder = std::filesystem::temp_directory_path() / "muster-no-driver-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  on_real_ranks(2, [&](const RankPlace& place) {
    JoinOptions options{.init_method = "file://" + folder + "/meet"};
    options.rank = place.rank;
    options.world_size = place.size;
    World world = World::join(options).value();
    const Result<Communicator> made = world.communicator(Backend::kNccl);
    expect(!made, "there is nothing to make it of");
    expect(made.error().code == ErrorCode::kUnavailable, made.error().message);
    expect_says(made.error().message, "this machine has no NVIDIA driver");
    expect(made.error().message.find('\n') == std::string::npos, "one line");
    world.barrier("after", seconds(20)).value();
    world.leave().value();
  });
  std::filesystem::remove_all(folder);
}

}  // namespace muster::comm::detail
