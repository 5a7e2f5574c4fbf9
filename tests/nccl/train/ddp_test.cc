// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/ddp.h>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "nccl/train/file_bytes.h"
#include "nccl/train/ranks.h"

namespace mc = muster::comm;
using mc::Communicator;
using mc::ErrorCode;
using mc::World;
using muster::train::DdpOptions;
using muster::train::DistributedDataParallel;
using muster::train::NamedTensor;
using muster::train_test::has;
using muster::train_test::run_ranks;

namespace {

// Three layers; with buckets of 16 bytes each is one of its own.
struct Model {
  explicit Model(int rank)
      : first(4, static_cast<float>(rank)),
        second(6, static_cast<float>(10 * rank)),
        third(5, static_cast<float>(100 * rank)) {}
  std::vector<NamedTensor> parameters() {
    return {{"first", {4}, first}, {"second", {2, 3}, second}, {"third", {5}, third}};
  }
  std::vector<float> first;
  std::vector<float> second;
  std::vector<float> third;
};

DdpOptions small_buckets() {
  DdpOptions options;
  options.buckets = {16, 16};
  return options;
}

// Adds to one gradient: so much on each of its elements.
void add(DistributedDataParallel& ddp, size_t parameter, float value) {
  for (float& one : ddp.gradient<float>(parameter))
    one += value;
}

void check_gradient(const DistributedDataParallel& ddp, size_t parameter, float expected) {
  const std::span<const float> gradient = ddp.gradient<float>(parameter);
  REQUIRE(gradient.size() == ddp.parameters()[parameter].data.count);
  for (const float one : gradient)
    CHECK(one == expected);
}

mc::Error error_of(const mc::Result<void>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error();
}

}  // namespace

TEST_CASE("gradients are averaged, parameters begin with rank 0's") {
  run_ranks(3, [](World&, Communicator& all) {
    Model model(all.rank());
    auto ddp = DistributedDataParallel::make(all, model.parameters(), small_buckets()).value();
    CHECK(model.first == std::vector<float>(4, 0));
    CHECK(model.third == std::vector<float>(5, 0));
    CHECK(ddp.buckets().size() == 3);
    for (int step = 0; step < 3; ++step) {
      ddp.zero_gradients();
      for (size_t i = 3; i-- > 0;) {
        add(ddp, i, static_cast<float>((all.rank() + 1) * (step + 1)) * static_cast<float>(i + 1));
        ddp.ready(i);
      }
      ddp.finish().value();
      for (size_t i = 0; i < 3; ++i) {
        check_gradient(ddp, i, 2 * static_cast<float>((step + 1)) * static_cast<float>(i + 1));
      }
    }
  });
}

TEST_CASE("ranks that make their gradients in another order get the same") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    auto ddp = DistributedDataParallel::make(all, model.parameters(), small_buckets()).value();
    const std::vector<size_t> order =
        all.rank() == 0 ? std::vector<size_t>{2, 1, 0} : std::vector<size_t>{0, 2, 1};
    for (const size_t i : order) {
      add(ddp, i, static_cast<float>(all.rank()) + static_cast<float>(i));
      ddp.ready(i);
    }
    ddp.finish().value();
    for (size_t i = 0; i < 3; ++i)
      check_gradient(ddp, i, 0.5F + static_cast<float>(i));
  });
}

TEST_CASE("a bucket is on its way while others are still being made") {
  run_ranks(2, [](World& world, Communicator& all) {
    Model model(0);
    std::vector<size_t> begun;
    DdpOptions options = small_buckets();
    options.before_all_reduce = [&begun](size_t bucket) { begun.push_back(bucket); };
    auto ddp = DistributedDataParallel::make(all, model.parameters(), options).value();
    // Rank 1 begins only when rank 0 has gone on: ready() does not wait for it.
    if (all.rank() == 1) world.get("rank 0 went on", std::chrono::seconds(30)).value();
    ddp.ready(2);
    CHECK(begun == std::vector<size_t>{0});
    ddp.ready(0);  // the third bucket; the second is not complete, so it waits for its turn
    CHECK(begun == std::vector<size_t>{0});
    if (all.rank() == 0) world.set("rank 0 went on", "yes").value();
    ddp.ready(1);
    CHECK(begun == std::vector<size_t>{0, 1, 2});
    ddp.finish().value();
  });
}

TEST_CASE("without find_unused_parameters, those that were not used are an error by name") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    auto ddp = DistributedDataParallel::make(all, model.parameters(), small_buckets()).value();
    ddp.ready(2);
    const mc::Error error = error_of(ddp.finish());
    CHECK(error.code == ErrorCode::kInvalidArgument);
    CHECK(error.message ==
          "ddp: no gradient in this step for first, second (2 of 3 parameters); set "
          "find_unused_parameters if that is meant");
    CHECK(error_of(ddp.finish()).message == error.message);
  });
}

TEST_CASE("with find_unused_parameters they are reported, and used by some is used") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    DdpOptions options = small_buckets();
    options.find_unused_parameters = true;
    auto ddp = DistributedDataParallel::make(all, model.parameters(), options).value();
    ddp.zero_gradients();
    if (all.rank() == 1) {
      add(ddp, 1, 3);
      ddp.ready(1);
    }
    ddp.finish().value();
    CHECK(ddp.unused_parameters() == std::vector<std::string>{"first", "third"});
    check_gradient(ddp, 0, 0);
    check_gradient(ddp, 1, 1.5F);
    // The next step knows nothing of it.
    ddp.zero_gradients();
    for (size_t i = 3; i-- > 0;)
      ddp.ready(i);
    ddp.finish().value();
    CHECK(ddp.unused_parameters().empty());
  });
}

TEST_CASE("under no_sync gradients add up here, and the next step averages the sum") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    int begun = 0;
    DdpOptions options = small_buckets();
    options.find_unused_parameters = true;
    options.before_all_reduce = [&begun](size_t) { ++begun; };
    auto ddp = DistributedDataParallel::make(all, model.parameters(), options).value();
    ddp.zero_gradients();
    {
      const auto guard = ddp.no_sync();
      for (int step = 0; step < 2; ++step) {
        add(ddp, 1, static_cast<float>(all.rank() + 1));
        ddp.ready(1);
        ddp.finish().value();
      }
    }
    CHECK(begun == 0);
    check_gradient(ddp, 1, static_cast<float>(2 * (all.rank() + 1)));
    add(ddp, 0, 8);
    ddp.ready(0);
    ddp.finish().value();
    CHECK(begun == 3);
    check_gradient(ddp, 0, 8);
    check_gradient(ddp, 1, 3);
    CHECK(ddp.unused_parameters() == std::vector<std::string>{"third"});
  });
}

TEST_CASE("a gradient that is ready twice in a step is an error by name") {
  run_ranks(1, [](World&, Communicator& all) {
    Model model(0);
    auto ddp = DistributedDataParallel::make(all, model.parameters()).value();
    ddp.ready(1);
    ddp.ready(1);
    CHECK(has(error_of(ddp.finish()).message, "parameter 'second' was ready twice"));
  });
  run_ranks(1, [](World&, Communicator& all) {
    Model model(0);
    auto ddp = DistributedDataParallel::make(all, model.parameters()).value();
    ddp.ready(3);
    CHECK(has(error_of(ddp.finish()).message, "there is no parameter 3"));
    CHECK(ddp.gradient(3).data == nullptr);
    CHECK(ddp.gradient<double>(0).empty());  // it is float
  });
}

TEST_CASE("ranks with other parameters are named on all ranks") {
  run_ranks(3, [](World&, Communicator& all) {
    Model model(0);
    std::vector<NamedTensor> parameters = model.parameters();
    if (all.rank() == 1) parameters[1].shape = {3, 2};
    const auto made = DistributedDataParallel::make(all, parameters);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kMismatch);
    CHECK(made.error().ranks == std::vector<int>{1});
    CHECK(made.error().message ==
          "rank 1: ddp: parameter 1 is 'second' float32 [3, 2], rank 0's is 'second' float32 [2, "
          "3]");
    parameters.resize(all.rank() == 2 ? 2 : 3);
    CHECK(has(DistributedDataParallel::make(all, parameters).error().message,
              "parameter 1 is 'second'"));
  });
}

TEST_CASE("parameters that cannot have gradients are refused on all ranks") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    std::vector<int32_t> whole(4);
    auto refused = [&](const std::vector<NamedTensor>& parameters) {
      const auto made = DistributedDataParallel::make(all, parameters);
      REQUIRE_FALSE(made);
      CHECK(made.error().code == ErrorCode::kInvalidArgument);
      return made.error().message;
    };
    CHECK(has(refused({}), "there are no parameters"));
    CHECK(has(refused({{"whole", {4}, whole}}), "parameter 'whole' is of type int32"));
    CHECK(has(refused({{"a", {4}, model.first}, {"a", {4}, model.first}}), "'a' is there twice"));
    // One rank's mistake is everybody's answer.
    if (all.rank() == 0) {
      CHECK(has(refused({{"a", {4}, model.first}}), "rank 1: ddp: parameter 'a' is of type int32"));
    } else {
      CHECK(has(refused({{"a", {4}, whole}}), "rank 1: ddp: parameter 'a' is of type int32"));
    }
  });
}

TEST_CASE("device memory without memory for its gradients is refused") {
  run_ranks(1, [](World&, Communicator& all) {
    Model model(0);
    std::vector<NamedTensor> parameters = model.parameters();
    for (NamedTensor& one : parameters)
      one.data.memory = mc::Memory::kDevice;
    CHECK(has(DistributedDataParallel::make(all, parameters).error().message,
              "need DdpOptions::allocate"));
    DdpOptions options;
    options.allocate = [](size_t, size_t, mc::DataType) { return mc::Buffer(); };
    options.find_unused_parameters = true;
    CHECK(has(DistributedDataParallel::make(all, parameters, options).error().message,
              "needs DdpOptions::control"));
    CHECK(has(DistributedDataParallel::make(all, model.parameters(), options).error().message,
              "gave other memory than bucket 0 asked for: 20 elements of float32"));
  });
}

TEST_CASE("gradients lie in the memory that the program gives") {
  run_ranks(2, [](World&, Communicator& all) {
    Model model(0);
    std::vector<std::vector<float>> memory(3);
    DdpOptions options = small_buckets();
    options.allocate = [&memory](size_t bucket, size_t count, mc::DataType) {
      memory[bucket].resize(count);
      return mc::Buffer(memory[bucket]);
    };
    auto ddp = DistributedDataParallel::make(all, model.parameters(), options).value();
    CHECK(ddp.gradient<float>(2).data() == memory[0].data());
    CHECK(ddp.storage(0).data == memory[0].data());
    CHECK(ddp.storage(3).data == nullptr);
    for (size_t i = 3; i-- > 0;) {
      add(ddp, i, static_cast<float>(all.rank()));
      ddp.ready(i);
    }
    ddp.finish().value();
    CHECK(memory[2][0] == 0.5F);
  });
}

TEST_CASE("types may be mixed") {
  run_ranks(2, [](World&, Communicator& all) {
    std::vector<double> wide(3);
    std::vector<float> usual(3);
    std::vector<mc::Bfloat16> narrow(3);
    const std::vector<NamedTensor> parameters = {
        {"wide", {3}, wide}, {"usual", {3}, usual}, {"narrow", {3}, narrow}};
    auto ddp = DistributedDataParallel::make(all, parameters).value();
    CHECK(ddp.buckets().size() == 3);
    ddp.zero_gradients();
    ddp.gradient<double>(0)[1] = all.rank();
    ddp.gradient<mc::Bfloat16>(2)[1] = mc::Bfloat16::from(static_cast<float>(3 * all.rank()));
    for (size_t i = 3; i-- > 0;)
      ddp.ready(i);
    ddp.finish().value();
    CHECK(ddp.gradient<double>(0)[1] == 0.5);
    CHECK(ddp.gradient<mc::Bfloat16>(2)[1].to_float() == 1.5F);
  });
}

TEST_CASE("a rank that never comes is a timeout at the deadline, again and again") {
  run_ranks(2, [](World& world, Communicator& all) {
    Model model(0);
    DdpOptions options = small_buckets();
    options.timeout = std::chrono::milliseconds(500);
    auto ddp = DistributedDataParallel::make(all, model.parameters(), options).value();
    if (all.rank() == 1) {
      world.get("rank 0 gave up", std::chrono::seconds(30)).value();
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 3; i-- > 0;)
      ddp.ready(i);
    const mc::Error error = error_of(ddp.finish());
    CHECK(error.code == ErrorCode::kTimeout);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    CHECK(error_of(ddp.finish()).code == ErrorCode::kTimeout);
    CHECK(error_of(ddp.wait()).code == ErrorCode::kTimeout);
    world.set("rank 0 gave up", "yes").value();
  });
}

TEST_CASE("dropped with gradients under way it aborts the communicator") {
  run_ranks(2, [](World& world, Communicator& all) {
    Model model(0);
    {
      auto ddp = DistributedDataParallel::make(all, model.parameters(), small_buckets()).value();
      if (all.rank() == 1) {
        world.get("rank 0 dropped it", std::chrono::seconds(30)).value();
        return;
      }
      ddp.ready(2);
    }
    world.set("rank 0 dropped it", "yes").value();
    std::vector<float> numbers(1);
    const mc::Error error = error_of(all.all_reduce(numbers).wait());
    CHECK(error.code == ErrorCode::kAborted);
    CHECK(has(error.message, "DistributedDataParallel was dropped"));
  });
}
