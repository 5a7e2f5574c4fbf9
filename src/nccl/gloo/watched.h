// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <muster/comm/error.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nccl/core/operation.h"

namespace muster::comm::detail {

// Unwinds Gloo's collectives, which know no other way out. Thrown by WatchedBuffer's functions,
// caught where the operation was begun.
struct GlooFailure {
  Error error;  // ranks are the communicator's
};

// What the library said, without the "[file:line] " that it begins with.
std::string gloo_words(const std::exception& error);

class WatchedBuffer;

// Stands between Gloo's collectives and Gloo's transport: they get buffers from it whose waits end
// by the deadline, when a peer is lost, and on stop().
//
// Gloo itself gives none of these: its timeout begins anew with each message; a peer that dies in
// the middle of a message wakes nobody, nor does closing the connections from another thread; and a
// wait that ran out closes all connections. So the buffers belong to `idle`, a context without
// connections, whose timeouts do no harm, and are handed to the pairs of `connected`.
class WatchedContext final : public gloo::transport::Context {
 public:
  using Inner = std::shared_ptr<gloo::transport::Context>;
  // `world_ranks`: by rank, for messages.
  WatchedContext(Inner connected, Inner idle, std::vector<int> world_ranks);
  ~WatchedContext() override;

  // What Gloo's collectives call; they are one at a time, with the deadline that was set before.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override;
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      size_t bytes) override;

  // For messages of our own; from any thread. A buffer that is only sent from is not written to.
  std::unique_ptr<WatchedBuffer> make_buffer(const void* data, size_t bytes, Deadline deadline);

  // All waits end with kAborted, now and from now on. From any thread; waits for nothing.
  void stop();
  bool stopped() const { return stopped_.load(); }

  // Why the connection to a rank is of no use any more; nullopt: it is as far as one knows.
  std::optional<std::string> broken(int rank);
  // For messages: "rank 3", "ranks 1-3", in the world's numbers.
  std::string names(const std::vector<int>& ranks) const;

 private:
  friend class WatchedBuffer;
  void add(WatchedBuffer* buffer);
  void remove(WatchedBuffer* buffer);

  const Inner connected_;
  const Inner idle_;
  const std::vector<int> world_ranks_;
  Deadline deadline_ = Deadline::max();
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::vector<WatchedBuffer*> buffers_;  // all that live
};

// A buffer of a WatchedContext, which outlives it. Used by one thread at a time.
class WatchedBuffer final : public gloo::transport::UnboundBuffer {
 public:
  WatchedBuffer(WatchedContext& context, std::unique_ptr<gloo::transport::UnboundBuffer> inner,
                Deadline deadline);
  ~WatchedBuffer() override;

  using gloo::transport::UnboundBuffer::waitRecv;
  using gloo::transport::UnboundBuffer::waitSend;
  // For one message. They throw GlooFailure and never return false; the deadline is what counts,
  // not the timeout.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int rank, uint64_t slot, size_t offset, size_t bytes) override;
  void recv(int rank, uint64_t slot, size_t offset, size_t bytes) override;
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t bytes) override;

  // Waits for all messages, until `until` at most: false then. Throws GlooFailure.
  bool finish(Deadline until);

 private:
  // The messages of one direction that are under way. Gloo says whose came last, not whose came: if
  // two end between two waits, one is named twice and the other never. So `ranks` may hold more
  // than `open`.
  struct Side {
    bool incoming = false;
    size_t open = 0;
    std::vector<int> ranks{};
  };
  struct Lost {
    int rank = 0;
    std::string why{};
  };

  void begin(Side& side, int rank, uint64_t slot, size_t offset, size_t bytes);
  bool wait(Side& side, int* rank, Deadline until);
  bool wait_in_library(Side& side, int* rank, Deadline now, Deadline until);
  void ended(Side& side, int rank);
  std::optional<Lost> find_lost(const Side& side);
  [[noreturn]] void fail(const Side& side, const Lost& lost) const;
  [[noreturn]] void fail_late(const Side& side) const;

  WatchedContext& context_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
  const Deadline deadline_;
  Deadline next_look_{};
  Side in_{.incoming = true};
  Side out_{};
};

}  // namespace muster::comm::detail
