// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/operation_codec.h"

#include <algorithm>
#include <numeric>

#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

using comm::DataType;
using comm::ReduceOp;
using comm::detail::OpKind;
using packed::put;
using packed::put_signed;
using packed::put_text;
using packed::Reader;
using worker_page::kMaxMembers;
using worker_page::kMaxName;
using worker_page::kMaxWorld;
using worker_page::OpState;

constexpr uint8_t kVersion = 1;
constexpr auto kMost = static_cast<int64_t>(worker_page::kMaxNumber);
constexpr int kMaxRank = 1 << 30;
constexpr size_t kMaxCalls = kMaxOpenCalls + kMaxDoneCalls;
constexpr size_t kMaxKnown = 65536;  // as many as a node may have workers
constexpr size_t kMostOfEnd = 6;     // bytes of a rank and how it ended
constexpr int kReduceOps = 5;
constexpr int kEnds = 4;

uint64_t clamped(int64_t value, int64_t most) {
  return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, most));
}

void put_call(std::string& out, const RankCall& call) {
  out += static_cast<char>(call.kind);
  out += static_cast<char>(call.type);
  out += static_cast<char>(static_cast<int>(call.reduce) * 4 + static_cast<int>(call.state));
  put(out, call.sequence);
  put(out, call.count);
  put(out, clamped(call.root_or_peer, kMaxWorld));
  put_signed(out, std::max(call.tag, -INT32_MAX));
  put(out, clamped(call.age_us, kMost));
  if (call.state != OpState::kRunning) put(out, clamped(call.took_us, kMost));
}

void read_call(Reader& reader, RankCall& call) {
  call.kind = static_cast<OpKind>(reader.byte_below(comm::detail::kOpKinds));
  call.type = static_cast<DataType>(reader.byte_below(comm::kDataTypes));
  const uint8_t both = reader.byte_below(kReduceOps * 4);
  if (both % 4 == 0) reader.fail();
  call.reduce = static_cast<ReduceOp>(both / 4);
  call.state = static_cast<OpState>(both % 4);
  call.sequence = static_cast<uint64_t>(reader.up_to(kMost));
  call.count = static_cast<uint64_t>(reader.up_to(kMost));
  call.root_or_peer = static_cast<int>(reader.up_to(kMaxWorld));
  call.tag = static_cast<int>(reader.around_zero(INT32_MAX));
  call.age_us = reader.up_to(kMost);
  if (call.state != OpState::kRunning) call.took_us = reader.up_to(kMost);
}

void put_communicator(std::string& out, const RankCommunicator& communicator) {
  append_u64(out, communicator.id);
  put(out, clamped(communicator.rank, kMaxWorld));
  put(out, clamped(communicator.size, kMaxWorld));
  out += static_cast<char>(communicator.closed ? 1 : 0);
  put_text(out, cut_line(communicator.name, kMaxName / 2));
  put(out, communicator.members.size());
  for (const RankRun& run : communicator.members) {
    put(out, clamped(run.first, kMaxWorld));
    put_signed(out, run.step);
    put(out, clamped(run.count, kMaxMembers));
  }
  put(out, communicator.collectives);
  put(out, communicator.messages);
  put(out, std::min(communicator.calls.size(), kMaxCalls));
  for (size_t i = 0; i < std::min(communicator.calls.size(), kMaxCalls); ++i)
    put_call(out, communicator.calls[i]);
}

void read_members(Reader& reader, RankCommunicator& communicator) {
  const int64_t runs = reader.up_to(kMaxRankRuns);
  int64_t listed = 0;
  for (int64_t i = 0; i < runs && !reader.bad(); ++i) {
    RankRun& run = communicator.members.emplace_back();
    run.first = static_cast<int>(reader.up_to(kMaxWorld));
    run.step = static_cast<int>(reader.around_zero(kMaxWorld));
    run.count = static_cast<int>(reader.up_to(kMaxMembers));
    listed += run.count;
    const int64_t last = run.first + int64_t{run.step} * (run.count - 1);
    if (run.count < 1 || last < 0 || last > kMaxWorld) reader.fail();
  }
  if (runs > 0 && listed != communicator.size) reader.fail();
}

void read_communicator(Reader& reader, RankCommunicator& communicator) {
  communicator.id = reader.u64();
  communicator.rank = static_cast<int>(reader.up_to(kMaxWorld));
  communicator.size = static_cast<int>(reader.up_to(kMaxWorld));
  if (communicator.rank >= communicator.size) reader.fail();
  communicator.closed = reader.byte_below(2) == 1;
  communicator.name = clean_line(reader.text(2 * kMaxName));
  read_members(reader, communicator);
  communicator.collectives = static_cast<uint64_t>(reader.up_to(kMost));
  communicator.messages = static_cast<uint64_t>(reader.up_to(kMost));
  const int64_t calls = reader.up_to(kMaxCalls);
  for (int64_t i = 0; i < calls && !reader.bad(); ++i)
    read_call(reader, communicator.calls.emplace_back());
}

bool has_open_calls(const RankCommunicator& communicator) {
  return std::any_of(communicator.calls.begin(), communicator.calls.end(),
                     [](const RankCall& call) { return !call.done(); });
}

}  // namespace

std::string encode_operations(const RankOperations& operations) {
  std::vector<const RankCommunicator*> all;
  for (const RankCommunicator& communicator : operations.communicators)
    all.push_back(&communicator);
  std::stable_partition(all.begin(), all.end(),
                        [](const RankCommunicator* one) { return has_open_calls(*one); });
  std::string body;
  size_t count = 0;
  for (const RankCommunicator* communicator : all) {
    std::string one;
    put_communicator(one, *communicator);
    if (count == kMaxRankCommunicators || body.size() + one.size() > kMaxOperationBytes) continue;
    body += one;
    ++count;
  }
  std::string out;
  put(out, count);
  return out + body;
}

void decode_operations(Reader& reader, RankOperations& operations) {
  const int64_t count = reader.up_to(kMaxRankCommunicators);
  for (int64_t i = 0; i < count && !reader.bad(); ++i)
    read_communicator(reader, operations.communicators.emplace_back());
}

std::string encode_known_ranks(const std::vector<KnownRank>& known) {
  std::string body;
  const size_t count = std::min(known.size(), kMaxOutcomeOperations / kMostOfEnd);
  size_t room = kMaxOutcomeOperations - count * kMostOfEnd;
  for (size_t i = 0; i < count; ++i) {
    const KnownRank& one = known[i];
    const std::string bytes = one.operations ? encode_operations(*one.operations) : "";
    const bool fits = !bytes.empty() && bytes.size() <= room;
    put(body, clamped(one.rank, kMaxRank));
    body += static_cast<char>(static_cast<int>(one.end) * 2 + (fits ? 1 : 0));
    if (!fits) continue;
    body += bytes;
    room -= bytes.size();
  }
  std::string out(1, static_cast<char>(kVersion));
  put(out, count);
  return out + body;
}

bool decode_known_ranks(std::string_view bytes, std::vector<KnownRank>& known) {
  Reader reader(bytes);
  if (reader.byte() != kVersion) return false;
  const int64_t count = reader.up_to(kMaxKnown);
  for (int64_t i = 0; i < count && !reader.bad(); ++i) {
    KnownRank& one = known.emplace_back();
    one.rank = static_cast<int>(reader.up_to(kMaxRank));
    const uint8_t both = reader.byte_below(kEnds * 2);
    one.end = static_cast<RankEnd>(both / 2);
    if (both % 2 == 0) continue;
    auto operations = std::make_shared<RankOperations>();
    decode_operations(reader, *operations);
    one.operations = std::move(operations);
  }
  return !reader.bad();
}

}  // namespace muster
