// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/checkpoint.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nccl/train/file_bytes.h"
#include "nccl/train/ranks.h"
#include "nccl/train/temporary_folder.h"

namespace mt = muster::train;
using muster::comm::Communicator;
using muster::comm::Error;
using muster::comm::ErrorCode;
using muster::comm::World;
using muster::train::Metadata;
using muster::train::NamedTensor;
using muster::train_test::contents;
using muster::train_test::has;
using muster::train_test::replace;
using muster::train_test::run_ranks;
using muster::train_test::TemporaryFolder;

namespace {

std::vector<NamedTensor> tensor(std::vector<float>& numbers) {
  return {{"numbers", {static_cast<int64_t>(numbers.size())}, numbers}};
}

Error load_error(Communicator& all, const std::string& path, std::vector<float>& numbers) {
  const auto loaded = mt::load_checkpoint(all, path, tensor(numbers));
  REQUIRE_FALSE(loaded);
  return loaded.error();
}

}  // namespace

TEST_CASE("rank 0's state is saved, and everybody loads it") {
  const TemporaryFolder folder;
  const std::string path = folder.path("checkpoint");
  run_ranks(3, [&](World&, Communicator& all) {
    std::vector<float> numbers(1000, static_cast<float>(all.rank() + 5));
    mt::save_checkpoint(all, path, tensor(numbers), {{"step", "7"}}).value();
    CHECK(std::filesystem::exists(path));  // also for those who did not write it
    const auto metadata = mt::load_checkpoint(all, path, tensor(numbers)).value();
    REQUIRE(metadata);
    CHECK(*metadata == Metadata{{"step", "7"}});
    CHECK(numbers == std::vector<float>(1000, 5));
  });
}

TEST_CASE("where there is no checkpoint yet, all start afresh") {
  const TemporaryFolder folder;
  run_ranks(2, [&](World&, Communicator& all) {
    std::vector<float> numbers = {1};
    CHECK_FALSE(mt::load_checkpoint(all, folder.path("none"), tensor(numbers)).value());
    CHECK(numbers[0] == 1);
  });
}

TEST_CASE("a rank that sees another file, or none, is named on all ranks") {
  const TemporaryFolder folder;
  std::vector<float> one = {1};
  std::vector<float> two = {1, 2};
  mt::write_tensors(folder.path("a"), tensor(one)).value();
  mt::write_tensors(folder.path("b"), tensor(two)).value();
  run_ranks(3, [&](World&, Communicator& all) {
    std::vector<float> numbers(1);
    const std::string own = all.rank() == 2 ? "b" : "a";
    const Error other = load_error(all, folder.path(own), numbers);
    CHECK(other.code == ErrorCode::kMismatch);
    CHECK(other.ranks == std::vector<int>{2});
    CHECK(has(other.message, "is not the same file here"));
    const Error none = load_error(all, folder.path(all.rank() == 1 ? "none" : "a"), numbers);
    CHECK(none.ranks == std::vector<int>{1});
    CHECK(has(none.message, "(none)"));
    // The other way round: it is rank 0 that sees nothing.
    const Error rest = load_error(all, folder.path(all.rank() == 0 ? "none" : "a"), numbers);
    CHECK(rest.ranks == std::vector<int>{1, 2});
  });
}

TEST_CASE("a write that fails on rank 0 is everybody's error") {
  const TemporaryFolder folder;
  run_ranks(2, [&](World&, Communicator& all) {
    std::vector<float> numbers(1);
    const auto saved = mt::save_checkpoint(all, folder.path("no/folder"), tensor(numbers));
    REQUIRE_FALSE(saved);
    CHECK(saved.error().code == ErrorCode::kSystem);
    CHECK(saved.error().ranks == std::vector<int>{0});
    CHECK(has(saved.error().message, "No such file or directory"));
  });
}

TEST_CASE("a torn checkpoint is everybody's error") {
  const TemporaryFolder folder;
  const std::string path = folder.path("checkpoint");
  std::vector<float> numbers(100);
  mt::write_tensors(path, tensor(numbers)).value();
  const std::string whole = contents(path);
  replace(path, whole.substr(0, whole.size() - 1));
  run_ranks(2, [&](World&, Communicator& all) {
    std::vector<float> mine(100);
    const Error error = load_error(all, path, mine);
    CHECK(error.code == ErrorCode::kSystem);
    CHECK(has(error.message, path + ": torn"));
  });
}

TEST_CASE("one rank's other shape is everybody's error") {
  const TemporaryFolder folder;
  const std::string path = folder.path("checkpoint");
  std::vector<float> numbers(4);
  mt::write_tensors(path, tensor(numbers)).value();
  run_ranks(2, [&](World&, Communicator& all) {
    std::vector<float> mine(all.rank() == 1 ? 5 : 4);
    const Error error = load_error(all, path, mine);
    CHECK(error.code == ErrorCode::kMismatch);
    CHECK(error.ranks == std::vector<int>{1});
    CHECK(has(error.message, "'numbers' is F32 [4], the program's is F32 [5]"));
  });
}
