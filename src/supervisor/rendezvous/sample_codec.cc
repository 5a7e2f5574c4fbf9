// SPDX-License-Identifier: Apache-2.0
// A sample is the distance of its rank from the one before, that of its time, a byte that says
// which of the measured values follow, and one for those of the worker's page. Rates of cores are
// in thousandths. A third byte is about its signs of life.
#include "supervisor/rendezvous/sample_codec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/rendezvous/operation_codec.h"

namespace muster {

namespace {

using packed::in;
using packed::kMaxNumber;
using packed::put;
using packed::put_double;
using packed::put_signed;
using packed::put_text;
using packed::Reader;

constexpr uint8_t kVersion = 3;
constexpr int kMaxRank = 1 << 30;
constexpr int64_t kMaxTimeUs = int64_t{1} << 60;
constexpr int64_t kMaxCount = int64_t{1} << 60;
constexpr double kMaxRate = 1e6;  // cores, GPUs

constexpr size_t kMaxChannel = 64;
constexpr size_t kMaxTraceback = 256;  // characters; each takes four bytes at most

constexpr size_t kMaxValueName = 4 * worker_page::kValueName;

// Of the second byte.
enum PageFlag : uint8_t { kHeartbeat = 1, kValues = 2, kOperations = 4 };

// Of the third one.
enum LifeFlag : uint8_t { kAlive = 1, kSpins = 2, kState = 4, kChannel = 8, kTraceback = 16 };

enum Flag : uint8_t {
  kCpu = 1,
  kRss = 2,
  kOutput = 4,
  kGpu = 8,
  kGpuMemory = 16,
  kStep = 32,  // and steps
  kSpeed = 64,
  kLoss = 128,
};

uint64_t thousandths(double value) {
  return static_cast<uint64_t>(std::llround(value * 1000));
}

uint8_t flags_of(const RankSample& sample) {
  uint8_t flags = 0;
  auto note = [&flags](Flag flag, bool known) { flags |= known ? flag : 0; };
  note(kCpu, in(sample.cpu, 0, kMaxRate));
  note(kRss, in(sample.rss_bytes, kMaxCount));
  note(kOutput, sample.last_output_us > 0 && in(sample.last_output_us, kMaxTimeUs));
  note(kGpu, in(sample.gpu, 0, kMaxRate));
  note(kGpuMemory, in(sample.gpu_memory_bytes, kMaxCount));
  note(kStep, in(sample.step, kMaxCount));
  note(kSpeed, in(sample.steps_per_s, 0, kMaxNumber));
  note(kLoss, sample.loss && in(*sample.loss, -kMaxNumber, kMaxNumber));
  return flags;
}

// What came of the worker's page.
void put_page_part(std::string& out, const RankSample& sample) {
  uint8_t more = 0;
  const bool beaten = sample.heartbeat_us > 0 && in(sample.heartbeat_us, kMaxTimeUs);
  const size_t values = std::min<size_t>(sample.values.size(), worker_page::kMaxValues);
  more |= beaten ? kHeartbeat : 0;
  more |= values > 0 ? kValues : 0;
  more |= sample.operations ? kOperations : 0;
  out += static_cast<char>(more);
  if (beaten) put_signed(out, sample.heartbeat_us - sample.time_us);
  if (values > 0) put(out, values);
  for (size_t i = 0; i < values; ++i) {
    const auto& [name, value] = sample.values[i];
    put_text(out, cut_line(name, worker_page::kValueName));
    put_double(out, in(value, -kMaxNumber, kMaxNumber) ? value : 0);
  }
  if (sample.operations) out += encode_operations(*sample.operations);
}

void put_life_part(std::string& out, const RankSample& sample) {
  uint8_t more = 0;
  const bool alive = sample.alive_us > 0 && in(sample.alive_us, kMaxTimeUs);
  more |= alive ? kAlive : 0;
  more |= sample.spins ? kSpins : 0;
  more |= sample.state != 0 ? kState : 0;
  more |= sample.wait_channel.empty() ? 0 : kChannel;
  more |= sample.traceback.empty() ? 0 : kTraceback;
  out += static_cast<char>(more);
  if (alive) put_signed(out, sample.alive_us - sample.time_us);
  if (more & kState) out += sample.state;
  if (more & kChannel) put_text(out, sample.wait_channel.substr(0, kMaxChannel));
  if (more & kTraceback) put_text(out, cut_line(sample.traceback, kMaxTraceback));
}

void put_sample(std::string& out, const RankSample& sample) {
  const uint8_t flags = flags_of(sample);
  out += static_cast<char>(flags);
  if (flags & kCpu) put(out, thousandths(sample.cpu));
  if (flags & kRss) put(out, static_cast<uint64_t>(sample.rss_bytes));
  if (flags & kOutput) put_signed(out, sample.last_output_us - sample.time_us);
  if (flags & kGpu) put(out, thousandths(sample.gpu));
  if (flags & kGpuMemory) put(out, static_cast<uint64_t>(sample.gpu_memory_bytes));
  if (flags & kStep) {
    put(out, static_cast<uint64_t>(sample.step));
    put(out, in(sample.steps, kMaxCount) ? static_cast<uint64_t>(sample.steps) + 1 : 0);
  }
  if (flags & kSpeed) put_double(out, sample.steps_per_s);
  if (flags & kLoss) put_double(out, *sample.loss);
  put_page_part(out, sample);
  put_life_part(out, sample);
}

double rate(Reader& reader) {
  return static_cast<double>(reader.up_to(static_cast<int64_t>(kMaxRate) * 1000)) / 1000;
}

void read_values(Reader& reader, RankSample& sample) {
  const int64_t count = reader.up_to(worker_page::kMaxValues);
  for (int64_t i = 0; i < count && !reader.bad(); ++i) {
    std::string name = clean_line(reader.text(kMaxValueName));
    sample.values.emplace_back(std::move(name), reader.real(-kMaxNumber));
  }
}

void read_life(Reader& reader, RankSample& sample) {
  const uint8_t more = reader.byte();
  if (more & kAlive) sample.alive_us = reader.near(sample.time_us, kMaxTimeUs);
  sample.spins = (more & kSpins) != 0;
  if (more & kState) {
    const auto state = static_cast<char>(reader.byte());
    sample.state = state > ' ' && state < 127 ? state : '?';
  }
  if (more & kChannel) sample.wait_channel = clean_line(reader.text(kMaxChannel));
  if (more & kTraceback) sample.traceback = clean_line(reader.text(4 * kMaxTraceback));
}

void read_sample(Reader& reader, RankSample& sample) {
  const uint8_t flags = reader.byte();
  if (flags & kCpu) sample.cpu = rate(reader);
  if (flags & kRss) sample.rss_bytes = reader.up_to(kMaxCount);
  if (flags & kOutput) sample.last_output_us = reader.near(sample.time_us, kMaxTimeUs);
  if (flags & kGpu) sample.gpu = rate(reader);
  if (flags & kGpuMemory) sample.gpu_memory_bytes = reader.up_to(kMaxCount);
  if (flags & kStep) {
    sample.step = reader.up_to(kMaxCount);
    sample.steps = reader.up_to(kMaxCount + 1) - 1;
  }
  if (flags & kSpeed) sample.steps_per_s = reader.real(0);
  if (flags & kLoss) sample.loss = reader.real(-kMaxNumber);
  const uint8_t more = reader.byte();
  if (more & kHeartbeat) sample.heartbeat_us = reader.near(sample.time_us, kMaxTimeUs);
  if (more & kValues) read_values(reader, sample);
  if (more & kOperations) {
    auto operations = std::make_shared<RankOperations>();
    decode_operations(reader, *operations);
    sample.operations = std::move(operations);
  }
  read_life(reader, sample);
}

}  // namespace

size_t most_bytes_of(const RankSample& sample) {
  constexpr size_t kMeasured = 256;
  constexpr size_t kOfValue = kMaxValueName + 10;
  size_t bytes = kMeasured + sample.values.size() * kOfValue;
  bytes += std::min(sample.traceback.size(), 4 * kMaxTraceback);
  if (sample.operations) bytes += encode_operations(*sample.operations).size();
  return bytes;
}

std::string encode_samples(int attempt, const std::vector<RankSample>& samples) {
  const size_t count = std::min(samples.size(), kMaxSamplesPerMessage);
  std::string out(1, static_cast<char>(kVersion));
  put(out, static_cast<uint64_t>(std::max(attempt, 0)));
  put(out, count);
  int64_t rank = 0, time_us = 0;
  for (size_t i = 0; i < count; ++i) {
    RankSample sample = samples[i];
    sample.rank = std::clamp(sample.rank, 0, kMaxRank);
    sample.time_us = std::clamp<int64_t>(sample.time_us, 0, kMaxTimeUs);
    put_signed(out, sample.rank - rank);
    put_signed(out, sample.time_us - time_us);
    put_sample(out, sample);
    rank = sample.rank;
    time_us = sample.time_us;
  }
  return out;
}

bool decode_samples(std::string_view bytes, int& attempt, std::vector<RankSample>& samples) {
  Reader reader(bytes);
  if (reader.byte() != kVersion) return false;
  attempt = static_cast<int>(reader.up_to(kMaxRank));
  const int64_t count = reader.up_to(static_cast<int64_t>(kMaxSamplesPerMessage));
  int64_t rank = 0, time_us = 0;
  for (int64_t i = 0; i < count && !reader.bad(); ++i) {
    RankSample& sample = samples.emplace_back();
    sample.rank = static_cast<int>(rank = reader.near(rank, kMaxRank));
    sample.time_us = time_us = reader.near(time_us, kMaxTimeUs);
    read_sample(reader, sample);
  }
  return !reader.bad();
}

}  // namespace muster
