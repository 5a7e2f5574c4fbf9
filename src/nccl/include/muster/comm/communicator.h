// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/buffer.h>
#include <muster/comm/work.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::comm {

// kGloo: host memory, over TCP. kNccl: device memory, over whatever NCCL finds.
enum class Backend : uint8_t { kGloo = 0, kNccl = 1 };
const char* to_string(Backend backend);  // "gloo", "nccl"

struct CommunicatorOptions {
  // For its making and for close().
  Duration timeout = std::chrono::minutes(10);
  // For each operation that does not say otherwise; nullopt: timeout.
  std::optional<Duration> operation_timeout{};
  // Before each operation the ranks compare what they are about to do, through the store: other
  // kinds, sizes or types are named (kMismatch) instead of hanging, and so is who has not come.
  // Slow; for finding a fault. nullopt: as MUSTER_COMM_CHECK=1 in the environment says.
  std::optional<bool> checked{};
  // Unique within the program: what reports and /status call it. "": "world", or made from the
  // parent's name.
  std::string name{};
  int device = -1;  // kNccl: the CUDA device; negative: the local rank's, or the only visible one
  int init_roots = 1;  // kNccl: unique ids to begin with where the library can use several (2.23)
};

// Where the time of a communicator's making went.
struct InitTimings {
  Duration store{};    // comparing the world and handing on addresses or ids
  Duration library{};  // Gloo's connecting or NCCL's init
};

// One send or receive of a batch.
struct P2p {
  enum class Kind : uint8_t { kSend, kRecv };
  static P2p send(ConstBuffer buffer, int peer, int tag = 0);
  static P2p recv(Buffer buffer, int peer, int tag = 0);
  Kind kind = Kind::kSend;
  Buffer buffer{};  // not written to by a send
  int peer = 0;
  int tag = 0;
};

class RegisteredBuffer;
namespace detail {
class CommunicatorImpl;
}

constexpr int kNoColor = -1;  // split(): this rank is in no group

// A group of ranks that work together through one backend: torch.distributed's process group. It is
// move-only and has one owner.
//
// Ranks, roots and peers in calls are ranks *of the communicator*, 0 to size() - 1; ranks in errors
// are the world's. Counts are elements. Each member must call the same operations in the same order
// with the same sizes, except where a function says otherwise. `in` and `out` may be the same
// memory where a function says so ("in place"), otherwise they must not overlap.
//
// Threads: abort(), revoke() and status() may be called from any thread at any time; everything
// else from one thread at a time.
//
// After kTimeout, kPeerLost or kAborted all further operations fail with the same code at once:
// what the peers did with the broken operation is unknown. close() it, and make another or end.
// Device memory: the broken operation may still run on the device until then, and freeing memory or
// destroying a stream would wait for it.
//
// Device memory: the first message to or from a peer also connects to it, in the call itself, which
// returns when the peer has come, by the operation's deadline, even with OpOptions::async.
class Communicator {
 public:
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // An open one is aborted, without waiting for the device or the peers; close() tells more.
  ~Communicator();

  // This process' place among the members, and who they are.
  int rank() const;
  int size() const;
  Backend backend() const;
  const std::string& name() const;
  const std::vector<int>& ranks() const;  // its members' ranks of the world, by rank
  const InitTimings& init_timings() const;

  // Point to point. A tag tells messages between the same two ranks apart; NCCL knows no tags and
  // takes only 0. send() of host memory returns when the memory may be used again, not when it was
  // received. The i-forms are the same with OpOptions::async.
  Work send(ConstBuffer in, int peer, int tag = 0, OpOptions options = {});
  Work recv(Buffer out, int peer, int tag = 0, OpOptions options = {});
  Work isend(ConstBuffer in, int peer, int tag = 0, OpOptions options = {});
  Work irecv(Buffer out, int peer, int tag = 0, OpOptions options = {});
  // All at once, so that exchanges cannot wait for each other in a circle.
  Work batch(std::span<const P2p> operations, OpOptions options = {});

  // buffer: count elements on each rank; the root's go to all.
  Work broadcast(Buffer buffer, int root, OpOptions options = {});
  // in: count on each rank; out: count, on the root only (ignored elsewhere). In place allowed.
  Work reduce(ConstBuffer in, Buffer out, ReduceOp op, int root, OpOptions options = {});
  // In place.
  Work all_reduce(Buffer buffer, ReduceOp op = ReduceOp::kSum, OpOptions options = {});
  // in, out: count on each rank. In place allowed.
  Work all_reduce(ConstBuffer in, Buffer out, ReduceOp op, OpOptions options = {});
  // in: size() * count on the root (ignored elsewhere), rank by rank; out: count.
  Work scatter(ConstBuffer in, Buffer out, int root, OpOptions options = {});
  // in: count; out: size() * count on the root (ignored elsewhere), rank by rank.
  Work gather(ConstBuffer in, Buffer out, int root, OpOptions options = {});
  // in: count; out: size() * count, rank by rank.
  Work all_gather(ConstBuffer in, Buffer out, OpOptions options = {});
  // in: counts[rank()]; out: the sum of counts, rank by rank. `counts` is the same on each rank.
  Work all_gather(ConstBuffer in, Buffer out, std::span<const size_t> counts,
                  OpOptions options = {});
  // in: size() * count; out: count, the reduction of every rank's rank()-th part.
  Work reduce_scatter(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum,
                      OpOptions options = {});
  // in: the sum of counts; out: counts[rank()]. `counts` is the same on each rank.
  Work reduce_scatter(ConstBuffer in, Buffer out, std::span<const size_t> counts, ReduceOp op,
                      OpOptions options = {});
  // in, out: size() * count; part r of `in` becomes part rank() of `out` on rank r.
  Work all_to_all(ConstBuffer in, Buffer out, OpOptions options = {});
  // in: the sum of in_counts, out: the sum of out_counts; in_counts[r] here is out_counts[rank()]
  // on rank r.
  Work all_to_all(ConstBuffer in, std::span<const size_t> in_counts, Buffer out,
                  std::span<const size_t> out_counts, OpOptions options = {});
  // Returns when every member has called it. NCCL: host and device wait.
  Work barrier(OpOptions options = {});

  // A communicator of some of its ranks, in that order. Called by these members only.
  Result<Communicator> new_group(std::span<const int> ranks, CommunicatorOptions options = {});
  // Called by all members: those of one color (>= 0) form a group, ordered by key, then by rank. No
  // value for kNoColor.
  Result<std::optional<Communicator>> split(int color, int key = 0,
                                            CommunicatorOptions options = {});
  // A communicator without `excluded`, called by those who stay; this one may be a broken one.
  Result<Communicator> shrink(std::span<const int> excluded, CommunicatorOptions options = {});
  // The same members and `joining` more, who call World::grow_into() with the same name. NCCL's own
  // where the library has it, otherwise a new communicator is made.
  Result<Communicator> grow(std::span<const int> joining_world_ranks,
                            CommunicatorOptions options = {});

  // Makes device memory known to NCCL, so that it need not copy it. Gloo: does nothing, well.
  Result<RegisteredBuffer> register_buffer(Buffer buffer);

  // Stops what is under way, here; nothing new begins. The communicator can still make others by
  // new_group() and shrink(). From any thread.
  Result<void> revoke();
  // Stops what is under way and frees what belongs to it. From any thread; returns by `deadline`
  // whatever the library does. The first reason given is the one that later errors name.
  Result<void> abort(std::string reason = {}, Duration deadline = std::chrono::seconds(5));
  // Waits for what is under way, then frees everything. After an error as abort().
  Result<void> close();
  // What has gone wrong behind the scenes, asked now. From any thread.
  Result<void> status() const;

  // Aborts several: all are stopped first, then freed, so that none waits for another.
  static Result<void> abort_all(std::span<Communicator* const> communicators,
                                std::string reason = {},
                                Duration deadline = std::chrono::seconds(5));

  explicit Communicator(std::shared_ptr<detail::CommunicatorImpl> impl);
  detail::CommunicatorImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<detail::CommunicatorImpl> impl_;  // null: moved from
};

// While it is open, operations that this thread begins on any communicator are only collected;
// end() begins them together, as between ncclGroupStart and ncclGroupEnd. One that is dropped
// without end(), by a throw say, forgets them: their Works fail with kAborted. If one call in it is
// wrong, end() begins none of them and says which. Not nested.
class GroupGuard {
 public:
  GroupGuard();
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;
  // A Work for all of them; theirs say the same.
  Work end(OpOptions options = {});
};

// Memory that NCCL knows; unknown to it again when this is dropped. The communicator must still be
// there, or have been closed.
class RegisteredBuffer {
 public:
  RegisteredBuffer() = default;
  explicit RegisteredBuffer(std::shared_ptr<void> handle) : handle_(std::move(handle)) {}

 private:
  std::shared_ptr<void> handle_;
};

}  // namespace muster::comm
