// SPDX-License-Identifier: Apache-2.0
// NCCL through the library's own interface, as a training program has it.
#include <doctest/doctest.h>
#include <muster/comm/world.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "nccl/cuda/on_double.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Where the ranks meet, for one test.
struct WorldTest {
  std::string folder = std::filesystem::temp_directory_path() / "muster-nccl-world-XXXXXX";
  WorldTest() { REQUIRE(mkdtemp(folder.data()) != nullptr); }
  ~WorldTest() { std::filesystem::remove_all(folder); }

  World join(const RankPlace& place) const {
    setenv("LOCAL_RANK", std::to_string(place.rank).c_str(), 1);
    JoinOptions options{.init_method = "file://" + folder + "/meet"};
    options.rank = place.rank;
    options.world_size = place.size;
    options.timeout = seconds(20);
    return World::join(options).value();
  }
};

CommunicatorOptions in_time(Duration timeout = seconds(20), const std::string& name = {}) {
  CommunicatorOptions options;
  options.timeout = timeout;
  options.name = name;
  return options;
}

void expect_sum(Communicator& communicator, const std::string& what) {
  Device ones(filled(3, 1));
  communicator.all_reduce(ones).wait().value();
  expect_values(ones, filled(3, communicator.size()), what);
}

}  // namespace

TEST_CASE_FIXTURE(WorldTest, "a world makes NCCL communicators, and these make others") {
  run_ranks(3, [this](const RankPlace& place) {
    use_double(Nccl::kNew);
    World world = join(place);
    test::use_device(Backend::kNccl, place.rank);
    Communicator all = world.communicator(Backend::kNccl, in_time()).value();
    expect_sum(all, "all");
    expect(all.init_timings().library.count() >= 0, "timings");
    std::optional<Communicator> part =
        all.split(place.rank == 1 ? kNoColor : 0, 0, in_time()).value();
    expect(part.has_value() == (place.rank != 1), "who is in the part");
    if (part) {
      expect_sum(*part, "the part");
      part->close().value();
      const int middle[] = {1};
      Communicator rest = all.shrink(middle, in_time()).value();
      expect_sum(rest, "the rest");
      rest.close().value();
    }
    const int pair[] = {2, 0};
    if (place.rank != 1) {
      Communicator group = all.new_group(pair, in_time()).value();
      expect_sum(group, "a group");
      group.close().value();
    }
    all.barrier().wait().value();
    all.close().value();
    world.leave().value();
  });
}

TEST_CASE_FIXTURE(WorldTest, "a communicator grows by NCCL's own function") {
  run_ranks(3, [this](const RankPlace& place) {
    use_double(Nccl::kNew);
    World world = join(place);
    test::use_device(Backend::kNccl, place.rank);
    Communicator all = world.communicator(Backend::kNccl, in_time()).value();
    std::optional<Communicator> two =
        all.split(place.rank == 2 ? kNoColor : 0, 0, in_time()).value();
    const int joining[] = {2};
    Communicator grown = two ? two->grow(joining, in_time(seconds(20), "grown")).value()
                             : world.grow_into(Backend::kNccl, "grown", in_time()).value();
    expect(grown.size() == 3, "three");
    expect_sum(grown, "grown");
    world.leave().value();
  });
}

TEST_CASE_FIXTURE(WorldTest, "those who live on shrink, also where one has aborted already") {
  run_ranks(3,
            [this](const RankPlace& place) {
              use_double();
              World world = join(place);
              test::use_device(Backend::kNccl, place.rank);
              Communicator all = world.communicator(Backend::kNccl, in_time()).value();
              expect_sum(all, "all");
              world.barrier("used", seconds(20)).value();
              if (place.rank == 2) raise(SIGKILL);
              Device values(filled(2, 1));
              expect_error(all.all_reduce(values).wait(), ErrorCode::kPeerLost,
                           "with the dead one");
              if (place.rank == 1) all.abort("given up").value();
              const int dead[] = {2};
              Communicator rest = all.shrink(dead, in_time()).value();
              expect_sum(rest, "the rest");
            },
            {2});
}

TEST_CASE_FIXTURE(WorldTest, "ranks on one GPU are named before they hang") {
  run_ranks(2, [this](const RankPlace& place) {
    use_double();
    setenv("DOUBLE_DEVICES", "1", 1);
    World world = join(place);
    const Result<Communicator> made = world.communicator(Backend::kNccl, in_time());
    expect_says(expect_error(made, ErrorCode::kMismatch, "the same GPU"),
                "ranks 0-1 use the same device");
  });
}

TEST_CASE_FIXTURE(WorldTest, "a local rank without a GPU is told so") {
  run_ranks(3, [this](const RankPlace& place) {
    use_double();
    setenv("DOUBLE_DEVICES", "2", 1);
    World world = join(place);
    const Result<Communicator> made = world.communicator(Backend::kNccl, in_time(seconds(3)));
    expect(!made, "one has none");
    if (place.rank == 2) expect_says(made.error().message, "only 2 GPUs are visible");
  });
}

TEST_CASE_FIXTURE(WorldTest,
                  "whatever breaks in flight ends the communicator and frees the device") {
  // ncclInvalidArgument, which before the launch would only mean that the call was wrong.
  run_ranks(1, [this](const RankPlace& place) {
    use_double(Nccl::kToday, "kernel:fail=4@3");
    World world = join(place);
    Communicator all = world.communicator(Backend::kNccl, in_time()).value();
    expect_sum(all, "before");
    Device values(filled(2, 1));
    const std::string message =
        expect_error(all.all_reduce(values).wait(), ErrorCode::kNccl, "what breaks");
    expect_says(message, "invalid argument");
    expect_says(expect_error(all.status(), ErrorCode::kNccl, "its state"),
                "not done after an earlier error");
    (void)values.values();  // the device goes on
    all.close().value();
    Communicator again = world.communicator(Backend::kNccl, in_time(seconds(20), "again")).value();
    expect_sum(again, "again");
  });
}

TEST_CASE_FIXTURE(WorldTest, "an operation that hangs ends by its time, and all can go on") {
  run_ranks(2, [this](const RankPlace& place) {
    use_double();
    World world = join(place);
    test::use_device(Backend::kNccl, place.rank);
    Communicator all = world.communicator(Backend::kNccl, in_time()).value();
    Device values(filled(2, 1));
    if (place.rank == 0) {
      OpOptions short_time;
      short_time.timeout = milliseconds(300);
      const Result<void> done = within(seconds(2), "it", [&] {
        return all.all_reduce(values, ReduceOp::kSum, short_time).wait();
      });
      expect_error(done, ErrorCode::kTimeout, "it");
      within(seconds(5), "close", [&] { return all.close(); }).value();
      (void)values.values();  // the device goes on
    }
    world.barrier("timed out", seconds(20)).value();
    if (place.rank == 1) all.abort().value();
    Communicator again = world.communicator(Backend::kNccl, in_time(seconds(20), "again")).value();
    expect_sum(again, "again");
  });
}

}  // namespace muster::comm::detail
