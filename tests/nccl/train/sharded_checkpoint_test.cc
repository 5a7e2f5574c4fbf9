// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/sharded_checkpoint.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "nccl/train/failing_readdir.h"
#include "nccl/train/file_bytes.h"
#include "nccl/train/manifest.h"
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
using muster::train_test::FailingReaddir;
using muster::train_test::has;
using muster::train_test::replace;
using muster::train_test::run_ranks;
using muster::train_test::TemporaryFolder;
using Floats = std::vector<float>;

namespace {

std::vector<NamedTensor> tensor(Floats& numbers) {
  return {{"row", {static_cast<int64_t>(numbers.size())}, numbers}};
}

// Rank r's part of 1, 2, 3, ...: `part` numbers, zeros from `end` on.
Floats part_of(int rank, size_t part, size_t end) {
  Floats numbers(part, 0);
  for (size_t i = 0; i < part; ++i) {
    const size_t number = static_cast<size_t>(rank) * part + i + 1;
    if (number <= end) numbers[i] = static_cast<float>(number);
  }
  return numbers;
}

void save(int ranks, const std::string& folder, size_t part, size_t end,
          const Metadata& metadata = {}) {
  run_ranks(ranks, [&](World&, Communicator& all) {
    Floats numbers = part_of(all.rank(), part, end);
    mt::save_sharded(all, folder, tensor(numbers), metadata).value();
  });
}

Error load_error(Communicator& all, const std::string& folder, size_t part,
                 mt::ShardedLoadOptions options = {}) {
  Floats numbers(part);
  const auto loaded = mt::load_sharded(all, folder, tensor(numbers), options);
  REQUIRE_FALSE(loaded);
  return loaded.error();
}

std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    found.insert(entry.path().filename().string());
  }
  return found;
}

}  // namespace

TEST_CASE("each rank loads what it saved") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("deep/checkpoint");
  save(3, folder, 4, 12, {{"step", "5"}});
  run_ranks(3, [&](World&, Communicator& all) {
    Floats numbers(4);
    const auto metadata = mt::load_sharded(all, folder, tensor(numbers)).value();
    REQUIRE(metadata);
    CHECK(*metadata == Metadata{{"step", "5"}});
    CHECK(numbers == part_of(all.rank(), 4, 12));
  });
}

TEST_CASE("a save replaces the one before and removes its shards") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(2, folder, 4, 8);
  CHECK(names(folder) ==
        std::set<std::string>{"manifest.json", "shard-1-0.safetensors", "shard-1-1.safetensors"});
  // What a save left that was killed, and somebody else's file.
  replace(folder + "/shard-7-0.safetensors.partial", "x");
  replace(folder + "/notes.txt", "mine");
  save(2, folder, 4, 8);
  CHECK(names(folder) == std::set<std::string>{"manifest.json", "notes.txt",
                                               "shard-8-0.safetensors", "shard-8-1.safetensors"});
}

TEST_CASE("a save that fails on one rank leaves the one before") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(2, folder, 4, 8);
  run_ranks(2, [&](World&, Communicator& all) {
    Floats other(4, 9);
    std::vector<NamedTensor> wrong = tensor(other);
    if (all.rank() == 1) wrong[0].shape = {5};
    const auto saved = mt::save_sharded(all, folder, wrong);
    REQUIRE_FALSE(saved);
    CHECK(saved.error().ranks == std::vector<int>{1});
    Floats numbers(4);
    REQUIRE(mt::load_sharded(all, folder, tensor(numbers)).value());
    CHECK(numbers == part_of(all.rank(), 4, 8));
  });
}

TEST_CASE("a folder that cannot be read to its end is an error on all ranks") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(2, folder, 4, 8);
  const FailingReaddir failing("shard-1-");
  run_ranks(2, [&](World&, Communicator& all) {
    Floats numbers = part_of(all.rank(), 4, 8);
    const auto saved = mt::save_sharded(all, folder, tensor(numbers));
    REQUIRE_FALSE(saved);
    CHECK(saved.error().ranks == std::vector<int>{0});
    CHECK(has(saved.error().message, "Input/output error"));
    REQUIRE(mt::load_sharded(all, folder, tensor(numbers)).value());
  });
}

TEST_CASE("older shards that cannot be found stay, and the save is good") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(2, folder, 4, 8);
  const FailingReaddir failing("shard-2-");  // after the save
  save(2, folder, 4, 8);
  run_ranks(2, [&](World&, Communicator& all) {
    Floats numbers(4);
    REQUIRE(mt::load_sharded(all, folder, tensor(numbers)).value());
    CHECK(numbers == part_of(all.rank(), 4, 8));
  });
}

TEST_CASE("shards without a manifest are nothing, as is an empty folder") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(2, folder, 4, 8);
  std::filesystem::remove(folder + "/manifest.json");
  run_ranks(2, [&](World&, Communicator& all) {
    Floats numbers(4);
    CHECK_FALSE(mt::load_sharded(all, folder, tensor(numbers)).value());
    CHECK_FALSE(mt::load_sharded(all, temporary.path("none"), tensor(numbers)).value());
  });
}

TEST_CASE("a shard that is missing, torn or altered is named on all ranks") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  const std::string shard = folder + "/shard-1-1.safetensors";
  save(2, folder, 4, 8);
  const std::string whole = contents(shard);
  std::string altered = whole;
  altered.back() ^= 1;
  std::string other_header = whole;
  other_header[other_header.find("row")] = 'b';
  const auto error = [&] {
    Error found;
    run_ranks(2, [&](World&, Communicator& all) {
      const Error mine = load_error(all, folder, 4);
      CHECK(mine.code == ErrorCode::kSystem);
      CHECK(mine.ranks == std::vector<int>{1});
      if (all.rank() == 0) found = mine;
    });
    return found.message;
  };
  replace(shard, whole.substr(0, whole.size() - 2));
  CHECK(has(error(), shard + ": torn"));
  replace(shard, altered);
  CHECK(has(error(), shard + ": altered"));
  replace(shard, other_header);
  CHECK(has(error(), shard + ": this shard is not the one that the manifest describes"));
  std::filesystem::remove(shard);
  CHECK(has(error(), shard + ": this shard is missing, though the manifest names it"));
}

TEST_CASE("a manifest that is damaged or too long is refused") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  const std::string manifest = folder + "/manifest.json";
  save(1, folder, 4, 4);
  const std::string whole = contents(manifest);
  run_ranks(1, [&](World&, Communicator& all) {
    for (size_t size = 0; size + 2 < whole.size(); size += 7) {
      replace(manifest, whole.substr(0, size));
      if (size == 0) continue;  // an empty one is none
      CHECK(load_error(all, folder, 4).code == ErrorCode::kSystem);
    }
    std::string outside = whole;
    outside.replace(outside.find("shard-1-0"), 9, "../secret");
    replace(manifest, outside);
    CHECK(has(load_error(all, folder, 4).message, "the manifest is damaged"));
    std::filesystem::resize_file(manifest, mt::detail::kMaxManifest + 1);
    CHECK(has(load_error(all, folder, 4).message, "too long for a manifest"));
  });
}

TEST_CASE("another number of ranks is refused, unless flat tensors may be cut anew") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  // Ten numbers on three ranks: four each, two zeros of padding at the end.
  save(3, folder, 4, 10);
  run_ranks(2, [&](World&, Communicator& all) {
    const Error refused = load_error(all, folder, 5);
    CHECK(refused.code == ErrorCode::kMismatch);
    CHECK(has(refused.message, "was saved by 3 ranks, these are 2"));
    Floats numbers(5, -1);
    REQUIRE(mt::load_sharded(all, folder, tensor(numbers), {true}).value());
    CHECK(numbers == part_of(all.rank(), 5, 10));
  });
  run_ranks(4, [&](World&, Communicator& all) {
    Floats numbers(6, -1);  // more room than there was: zeros
    REQUIRE(mt::load_sharded(all, folder, tensor(numbers), {true}).value());
    CHECK(numbers == part_of(all.rank(), 6, 10));
  });
  run_ranks(2, [&](World&, Communicator& all) {
    CHECK(has(load_error(all, folder, 4, {true}).message,
              "was saved with 12 elements, and what is beyond the 8 asked for is not padding"));
  });
}

TEST_CASE("the ranks' parts need not be of one size, nor their tensors in one order") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  run_ranks(3, [&](World&, Communicator& all) {
    Floats row(static_cast<size_t>(all.rank()), static_cast<float>(all.rank()));  // 1 2 2
    std::vector<int64_t> other = {all.rank() + 10};                               // 10 11 12
    std::vector<NamedTensor> tensors = {{"row", {all.rank()}, row}, {"other", {1}, other}};
    if (all.rank() == 1) std::swap(tensors[0], tensors[1]);
    mt::save_sharded(all, folder, tensors).value();
  });
  run_ranks(2, [&](World&, Communicator& all) {
    Floats row(all.rank() == 0 ? 2 : 1);
    std::vector<int64_t> other(all.rank() == 0 ? 1 : 2);
    std::vector<NamedTensor> tensors = {{"other", {static_cast<int64_t>(other.size())}, other},
                                        {"row", {static_cast<int64_t>(row.size())}, row}};
    if (all.rank() == 1) std::swap(tensors[0], tensors[1]);
    REQUIRE(mt::load_sharded(all, folder, tensors, {true}).value());
    CHECK(row == (all.rank() == 0 ? Floats{1, 2} : Floats{2}));
    CHECK(other == (all.rank() == 0 ? std::vector<int64_t>{10} : std::vector<int64_t>{11, 12}));
  });
}

TEST_CASE("what cannot be cut anew says why") {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path("checkpoint");
  save(3, folder, 4, 12);
  run_ranks(2, [&](World&, Communicator& all) {
    const auto error = [&](const std::vector<NamedTensor>& tensors) {
      const auto loaded = mt::load_sharded(all, folder, tensors, {true});
      REQUIRE_FALSE(loaded);
      CHECK(loaded.error().code == ErrorCode::kMismatch);
      return loaded.error().message;
    };
    Floats six(6);
    std::vector<double> wide(6);
    CHECK(has(error({{"row", {2, 3}, six}}), "'row' is not flat"));
    CHECK(has(error({{"row", {6}, wide}}), "'row' is F32 [4] in shard-1-0.safetensors"));
    CHECK(has(error({{"column", {6}, six}}), "'column' is missing in shard-1-0.safetensors"));
    CHECK(has(error({}), "has tensors that are not the program's"));
  });
  const std::string shard = folder + "/shard-1-2.safetensors";
  std::string altered = contents(shard);
  altered.back() ^= 1;
  replace(shard, altered);
  run_ranks(2, [&](World&, Communicator& all) {
    // Rank 0 looks at shards 0 and 2.
    const Error error = load_error(all, folder, 6, {true});
    CHECK(error.ranks == std::vector<int>{0});
    CHECK(has(error.message, shard + ": altered"));
  });
}
