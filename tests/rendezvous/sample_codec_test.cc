// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/sample_codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace muster {

namespace {

constexpr int64_t kNow = 1'796'000'000'000'000;

RankSample full_sample(int rank) {
  RankSample sample;
  sample.rank = rank;
  sample.time_us = kNow + rank;
  sample.cpu = 7.125;
  sample.rss_bytes = int64_t{12} << 30;
  sample.last_output_us = kNow - 1'500'000;
  sample.gpu = 0.97;
  sample.gpu_memory_bytes = int64_t{79} << 30;
  sample.step = 812;
  sample.steps = 1000;
  sample.steps_per_s = 3.25;
  sample.loss = -0.125;
  sample.heartbeat_us = kNow - 20'000;
  sample.values = {{"accuracy", 0.93}, {"lr", 1e-3}};
  sample.alive_us = kNow - 61'000'000;
  sample.spins = true;
  sample.state = 'D';
  sample.wait_channel = "fuse_wait_on_request";
  sample.traceback = "ValueError: bad sh\xC3\xA4pe (train.py:41)";
  return sample;
}

struct Decoded {
  bool good = false;
  int attempt = -1;
  std::vector<RankSample> samples;
};

Decoded decode(std::string_view bytes) {
  Decoded decoded;
  decoded.good = decode_samples(bytes, decoded.attempt, decoded.samples);
  return decoded;
}

void check_equal(const RankSample& a, const RankSample& b) {
  CHECK(a.rank == b.rank);
  CHECK(a.time_us == b.time_us);
  CHECK(a.cpu == doctest::Approx(b.cpu));
  CHECK(a.rss_bytes == b.rss_bytes);
  CHECK(a.last_output_us == b.last_output_us);
  CHECK(a.gpu == doctest::Approx(b.gpu));
  CHECK(a.gpu_memory_bytes == b.gpu_memory_bytes);
  CHECK(a.step == b.step);
  CHECK(a.steps == b.steps);
  CHECK(a.steps_per_s == b.steps_per_s);
  CHECK(a.loss == b.loss);
  CHECK(a.heartbeat_us == b.heartbeat_us);
  CHECK(a.values == b.values);
  CHECK(a.alive_us == b.alive_us);
  CHECK(a.spins == b.spins);
  CHECK(a.state == b.state);
  CHECK(a.wait_channel == b.wait_channel);
  CHECK(a.traceback == b.traceback);
  CHECK(!a.operations == !b.operations);
}

}  // namespace

TEST_CASE("samples survive the way, known values and unknown ones") {
  std::vector<RankSample> samples = {full_sample(8), RankSample(), full_sample(3)};
  samples[1].rank = 9;
  samples[1].time_us = kNow;
  const Decoded back = decode(encode_samples(4, samples));
  REQUIRE(back.good);
  CHECK(back.attempt == 4);
  REQUIRE(back.samples.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    check_equal(back.samples[i], samples[i]);
}

TEST_CASE("operations travel with their sample") {
  RankSample sample = full_sample(2);
  auto operations = std::make_shared<RankOperations>();
  operations->communicators.emplace_back().id = 7;
  sample.operations = operations;
  const Decoded back = decode(encode_samples(0, {sample, full_sample(3)}));
  REQUIRE(back.good);
  REQUIRE(back.samples.at(0).operations);
  CHECK(back.samples[0].operations->communicators.at(0).id == 7);
  CHECK_FALSE(back.samples[1].operations);
}

TEST_CASE("more values than a page has are left out, and refused when they come") {
  RankSample sample = full_sample(0);
  sample.values.assign(worker_page::kMaxValues + 1, {"name", 1.0});
  CHECK(decode(encode_samples(0, {sample})).samples.at(0).values.size() ==
        static_cast<size_t>(worker_page::kMaxValues));
}

TEST_CASE("a sample is small") {
  std::vector<RankSample> samples;
  for (int rank = 0; rank < 8; ++rank) {
    RankSample sample = full_sample(rank);
    sample.loss.reset();
    sample.values.clear();
    sample.wait_channel.clear();
    sample.traceback.clear();
    samples.push_back(sample);
  }
  // Every number known: 11 bytes for two sizes of memory, 11 for three ages, 8 for the speed, 4 for
  // steps, 4 for rates, and 7 that say whose it is and what of all that is there.
  CHECK(encode_samples(0, samples).size() < 8 * 46);
}

TEST_CASE("however long a traceback ends, it travels cut") {
  RankSample sample = full_sample(0);
  sample.traceback.assign(100'000, 'x');
  sample.wait_channel.assign(1'000, 'y');
  const std::string bytes = encode_samples(0, {sample});
  CHECK(bytes.size() < most_bytes_of(sample));
  const Decoded back = decode(bytes);
  REQUIRE(back.good);
  CHECK(back.samples[0].traceback.size() > 200);
  CHECK(back.samples[0].traceback.size() < 300);
  CHECK(back.samples[0].wait_channel.size() == 64);
}

TEST_CASE("every sample that was cut is refused") {
  const std::string whole = encode_samples(1, {full_sample(0), full_sample(1)});
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(decode(std::string_view(whole).substr(0, size)).good);
  }
  CHECK(decode(whole + "of a later version").good);
}

TEST_CASE("another version is refused") {
  std::string bytes = encode_samples(1, {full_sample(0)});
  bytes[0] = 1;
  CHECK_FALSE(decode(bytes).good);
}

TEST_CASE("no more samples than the limit go into a message or come out of one") {
  const std::vector<RankSample> many(kMaxSamplesPerMessage + 1, full_sample(0));
  CHECK(decode(encode_samples(0, many)).samples.size() == kMaxSamplesPerMessage);
  std::string claim("\x03\x00\x81\x08", 4);  // 1025 of them
  CHECK_FALSE(decode(claim + std::string(1'000'000, '\0')).good);
}

TEST_CASE("what is no number is left out, and is refused when it comes") {
  RankSample sample = full_sample(0);
  sample.cpu = std::numeric_limits<double>::quiet_NaN();
  sample.gpu = std::numeric_limits<double>::infinity();
  sample.steps_per_s = -std::numeric_limits<double>::infinity();
  sample.loss = std::numeric_limits<double>::quiet_NaN();
  sample.rss_bytes = std::numeric_limits<int64_t>::max();
  const Decoded back = decode(encode_samples(0, {sample}));
  REQUIRE(back.good);
  CHECK(back.samples[0].cpu == -1);
  CHECK(back.samples[0].gpu == -1);
  CHECK(back.samples[0].steps_per_s == -1);
  CHECK_FALSE(back.samples[0].loss);
  CHECK(back.samples[0].rss_bytes == -1);
  CHECK(back.samples[0].step == 812);

  RankSample only_loss;
  only_loss.loss = 1.0;
  std::string bytes = encode_samples(0, {only_loss});
  bytes.replace(bytes.size() - 10, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
  CHECK_FALSE(decode(bytes).good);
}

TEST_CASE("numbers that never end or do not fit are refused") {
  CHECK_FALSE(decode("\x03" + std::string(100, '\xff')).good);
  // A rank below 0: attempt 0, one sample, distance -1.
  CHECK_FALSE(decode(std::string("\x03\x00\x01\x01\x00\x00\x00", 7)).good);
}

}  // namespace muster
