// SPDX-License-Identifier: Apache-2.0
// Numbers are varints (7 bits a byte, low ones first), signed ones zigzag. A sample is the distance
// of its rank from the one before, that of its time, and a byte that says which of the other values
// follow. Rates of cores are in thousandths; what is no whole number is an IEEE double.
#include "supervisor/rendezvous/sample_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "supervisor/rendezvous/frames.h"

namespace muster {

namespace {

constexpr uint8_t kVersion = 1;
constexpr int kMaxRank = 1 << 30;
constexpr int64_t kMaxTimeUs = int64_t{1} << 60;
constexpr int64_t kMaxCount = int64_t{1} << 60;
constexpr double kMaxRate = 1e6;  // cores, GPUs
constexpr double kMaxNumber = 1e300;

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

void put(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_signed(std::string& out, int64_t value) {
  put(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

void put_double(std::string& out, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  append_u64(out, bits);
}

uint64_t thousandths(double value) {
  return static_cast<uint64_t>(std::llround(value * 1000));
}

bool in(int64_t value, int64_t most) {
  return value >= 0 && value <= most;
}

// False for what is not a number, too.
bool in(double value, double low, double high) {
  return value >= low && value <= high;
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
}

// After the first number that is cut or too large all are 0 and bad() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool bad() const { return bad_; }

  uint8_t byte() {
    if (bytes_.empty()) return fail();
    const auto value = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const uint8_t next = byte();
      value |= uint64_t{next & 127U} << shift;
      if (next < 128) return bad_ ? 0 : value;
    }
    return fail();
  }

  int64_t up_to(int64_t most) {
    const uint64_t value = number();
    return value <= static_cast<uint64_t>(most) ? static_cast<int64_t>(value) : fail();
  }

  // `base` and a distance from it, 0 to `most`.
  int64_t near(int64_t base, int64_t most) {
    const uint64_t raw = number();
    const auto distance = static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
    const int64_t value = base + distance;  // both are below 2^62
    return value >= 0 && value <= most ? value : fail();
  }

  double rate() { return static_cast<double>(up_to(static_cast<int64_t>(kMaxRate) * 1000)) / 1000; }

  double real(double low) {
    if (bytes_.size() < sizeof(uint64_t)) return fail();
    const uint64_t bits = read_u64(bytes_.data());
    bytes_.remove_prefix(sizeof bits);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return in(value, low, kMaxNumber) ? value : fail();
  }

 private:
  uint8_t fail() {
    bad_ = true;
    bytes_ = {};
    return 0;
  }
  std::string_view bytes_;
  bool bad_ = false;
};

void read_sample(Reader& reader, RankSample& sample) {
  const uint8_t flags = reader.byte();
  if (flags & kCpu) sample.cpu = reader.rate();
  if (flags & kRss) sample.rss_bytes = reader.up_to(kMaxCount);
  if (flags & kOutput) sample.last_output_us = reader.near(sample.time_us, kMaxTimeUs);
  if (flags & kGpu) sample.gpu = reader.rate();
  if (flags & kGpuMemory) sample.gpu_memory_bytes = reader.up_to(kMaxCount);
  if (flags & kStep) {
    sample.step = reader.up_to(kMaxCount);
    sample.steps = reader.up_to(kMaxCount + 1) - 1;
  }
  if (flags & kSpeed) sample.steps_per_s = reader.real(0);
  if (flags & kLoss) sample.loss = reader.real(-kMaxNumber);
}

}  // namespace

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
