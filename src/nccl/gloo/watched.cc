// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/watched.h"

#include <gloo/common/error.h>
#include <gloo/transport/tcp/address.h>

#include <algorithm>

#include "nccl/join/roll_call.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often a wait looks whether its peer is still there: the library does not say so if the peer
// dies in the middle of a message.
constexpr milliseconds kLook{100};

const std::vector<char>& impossible_address() {
  static const std::vector<char> bytes = [] {
    sockaddr_storage storage{};
    storage.ss_family = AF_UNIX;
    return gloo::transport::tcp::Address(storage).bytes();
  }();
  return bytes;
}

std::vector<int> each_once(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

GlooFailure aborted() {
  return {{ErrorCode::kAborted, "stopped here"}};
}

}  // namespace

std::string gloo_words(const std::exception& error) {
  std::string text = error.what();
  const size_t end = text.find("] ");
  if (text.starts_with('[') && end != std::string::npos) text.erase(0, end + 2);
  return text;
}

WatchedContext::WatchedContext(Inner connected, Inner idle, std::vector<int> world_ranks)
    : gloo::transport::Context(connected->rank, connected->size),
      connected_(std::move(connected)),
      idle_(std::move(idle)),
      world_ranks_(std::move(world_ranks)) {}

WatchedContext::~WatchedContext() = default;

std::unique_ptr<gloo::transport::Pair>& WatchedContext::getPair(int rank) {
  return connected_->getPair(rank);
}

std::unique_ptr<gloo::transport::Pair>& WatchedContext::createPair(int rank) {
  return connected_->createPair(rank);
}

std::unique_ptr<gloo::transport::UnboundBuffer> WatchedContext::createUnboundBuffer(void* data,
                                                                                    size_t bytes) {
  return make_buffer(data, bytes, deadline_);
}

std::unique_ptr<WatchedBuffer> WatchedContext::make_buffer(const void* data, size_t bytes,
                                                           Deadline deadline) {
  auto inner = idle_->createUnboundBuffer(const_cast<void*>(data), bytes);
  return std::make_unique<WatchedBuffer>(*this, std::move(inner), deadline);
}

void WatchedContext::stop() {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  for (WatchedBuffer* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void WatchedContext::add(WatchedBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(buffer);
}

void WatchedContext::remove(WatchedBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  std::erase(buffers_, buffer);
}

// A pair tells what became of it to whoever wants something of it, before it looks at what that is.
// To connect to an address of another family is what it then refuses without a trace.
std::optional<std::string> WatchedContext::broken(int rank) {
  try {
    getPair(rank)->connect(impossible_address());
  } catch (const gloo::InvalidOperationException&) {
    return std::nullopt;
  } catch (const std::exception& error) {
    return gloo_words(error);
  }
  return std::nullopt;
}

std::string WatchedContext::names(const std::vector<int>& ranks) const {
  std::vector<int> world = ranks;
  for (int& rank : world)
    rank = world_ranks_.at(static_cast<size_t>(rank));
  return rank_names(world);
}

WatchedBuffer::WatchedBuffer(WatchedContext& context,
                             std::unique_ptr<gloo::transport::UnboundBuffer> inner,
                             Deadline deadline)
    : gloo::transport::UnboundBuffer(inner->ptr, inner->size),
      context_(context),
      inner_(std::move(inner)),
      deadline_(deadline) {
  context_.add(this);
}

WatchedBuffer::~WatchedBuffer() {
  context_.remove(this);
}

bool WatchedBuffer::waitRecv(int* rank, milliseconds /*timeout*/) {
  return wait(in_, rank, deadline_);
}

bool WatchedBuffer::waitSend(int* rank, milliseconds /*timeout*/) {
  return wait(out_, rank, deadline_);
}

void WatchedBuffer::send(int rank, uint64_t slot, size_t offset, size_t bytes) {
  begin(out_, rank, slot, offset, bytes);
}

void WatchedBuffer::recv(int rank, uint64_t slot, size_t offset, size_t bytes) {
  begin(in_, rank, slot, offset, bytes);
}

void WatchedBuffer::recv(std::vector<int> /*ranks*/, uint64_t /*slot*/, size_t /*offset*/,
                         size_t /*bytes*/) {
  throw GlooFailure{{ErrorCode::kSystem, "receiving from any rank is not built in"}};
}

bool WatchedBuffer::finish(Deadline until) {
  while (in_.open > 0) {
    if (!wait(in_, nullptr, until)) return false;
  }
  while (out_.open > 0) {
    if (!wait(out_, nullptr, until)) return false;
  }
  return true;
}

void WatchedBuffer::begin(Side& side, int rank, uint64_t slot, size_t offset, size_t bytes) {
  if (context_.stopped()) throw aborted();
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  try {
    const auto& pair = context_.getPair(rank);
    if (side.incoming) {
      pair->recv(inner_.get(), slot, offset, bytes);
    } else {
      pair->send(inner_.get(), slot, offset, bytes);
    }
  } catch (const std::exception& error) {
    fail(side, {rank, gloo_words(error)});
  }
  side.ranks.push_back(rank);
  ++side.open;
}

bool WatchedBuffer::wait(Side& side, int* rank, Deadline until) {
  until = std::min(until, deadline_);
  for (;;) {
    const Deadline begin = steady_clock::now();
    if (wait_in_library(side, rank, begin, std::min(until, begin + kLook))) return true;

    const Deadline now = steady_clock::now();
    if (now >= next_look_) {
      next_look_ = now + kLook;
      if (const auto lost = find_lost(side)) {
        // It may have come just before the peer went.
        if (wait_in_library(side, rank, now, now)) return true;
        fail(side, *lost);
      }
    }
    if (now >= deadline_) fail_late(side);
    if (now >= until) return false;
  }
}

// Waits without looking up. What the library throws before the time is over is its pair's end.
bool WatchedBuffer::wait_in_library(Side& side, int* rank, Deadline now, Deadline until) {
  int whose = -1;
  const auto left = std::chrono::ceil<milliseconds>(std::max(until - now, Deadline::duration(0)));
  try {
    if (context_.stopped()) throw aborted();
    if (!(side.incoming ? inner_->waitRecv(&whose, left) : inner_->waitSend(&whose, left))) {
      throw aborted();
    }
  } catch (const std::exception& error) {
    if (context_.stopped()) throw aborted();
    if (steady_clock::now() >= now + left) return false;
    const auto lost = find_lost(side);
    fail(side, lost ? *lost : Lost{-1, gloo_words(error)});
  }
  ended(side, whose);
  if (rank != nullptr) *rank = whose;
  return true;
}

void WatchedBuffer::ended(Side& side, int rank) {
  --side.open;
  const auto found = std::find(side.ranks.begin(), side.ranks.end(), rank);
  if (found != side.ranks.end()) side.ranks.erase(found);
  if (side.open == 0) side.ranks.clear();
}

// Some of `ranks` may have sent what they had to and closed. Only if more are gone than that can
// be, one of them still owes a message.
std::optional<WatchedBuffer::Lost> WatchedBuffer::find_lost(const Side& side) {
  size_t gone = 0;
  std::optional<Lost> first;
  for (const int rank : side.ranks) {
    auto why = context_.broken(rank);
    if (!why) continue;
    ++gone;
    if (!first) first = Lost{rank, std::move(*why)};
  }
  if (gone <= side.ranks.size() - side.open) return std::nullopt;
  return first;
}

void WatchedBuffer::fail(const Side& side, const Lost& lost) const {
  if (context_.stopped()) throw aborted();
  const std::vector<int> ranks = lost.rank >= 0 ? std::vector{lost.rank} : each_once(side.ranks);
  throw GlooFailure{
      {ErrorCode::kPeerLost, "lost " + context_.names(ranks) + ": " + lost.why, ranks}};
}

void WatchedBuffer::fail_late(const Side& side) const {
  const std::vector<int> ranks = each_once(side.ranks);
  const std::string who = context_.names(ranks);
  throw GlooFailure{{ErrorCode::kTimeout,
                     side.incoming ? "nothing came from " + who : "nothing was taken by " + who,
                     ranks}};
}

}  // namespace muster::comm::detail
