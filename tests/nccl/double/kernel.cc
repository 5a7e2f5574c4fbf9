// SPDX-License-Identifier: Apache-2.0
// What runs on the streams. Every collective is made of exchanges of plain bytes between pairs of
// ranks; nothing tells the other side which operation they belong to, as with NCCL's kernels. So
// ranks that call different things wait for ever or get wrong data.
#include "kernel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "bootstrap.h"
#include "faults.h"
#include "log.h"
#include "memory.h"

namespace doubles {
namespace {

class Kernel {
 public:
  Kernel(std::shared_ptr<ncclComm> comm, std::vector<Operation> operations)
      : comm_(std::move(comm)), operations_(std::move(operations)) {}

  cudaError_t operator()() {
    if (int code = fault("kernel")) return broken(code);
    for (const Operation& operation : operations_) {
      if (!reachable(operation)) return cudaErrorIllegalAddress;
    }
    Outcome outcome = Outcome::kDone;
    for (const Operation& operation : operations_) {
      if (operation.point_to_point() || operation.count == 0) continue;
      if (outcome == Outcome::kDone) outcome = collective(operation);
    }
    if (outcome == Outcome::kDone) outcome = point_to_point();
    if (outcome != Outcome::kLost) return cudaSuccess;
    warn("socketProgress: Connection closed by remote peer");
    return broken(ncclRemoteError);
  }

 private:
  // A kernel does not notice what is wrong: the host does (or does not, kStay), and the kernel
  // waits on until the host stops it.
  cudaError_t broken(int code) const {
    if (code != kStay) comm_->fail(static_cast<ncclResult_t>(code));
    comm_->stop_kernels.wait();
    return cudaSuccess;
  }
  size_t ranks() const { return static_cast<size_t>(comm_->ranks); }
  size_t me() const { return static_cast<size_t>(comm_->rank); }
  bool is_root(const Operation& o) const { return comm_->rank == o.root_or_peer; }
  int fd(size_t rank) const {
    return comm_->links->fd(Channel::kCollectives, static_cast<int>(rank));
  }
  Outcome move(std::vector<Piece> pieces) const {
    return exchange(std::move(pieces), comm_->stop_kernels);
  }

  size_t in_parts(const Operation& o) const;
  size_t out_parts(const Operation& o) const;
  bool reachable(const Operation& o) const;
  Outcome collective(const Operation& o);
  Outcome all_reduce(const Operation& o);
  Outcome reduce_to_root(const Operation& o);
  Outcome reduce_scatter(const Operation& o);
  Outcome from_root(const Operation& o, size_t stride);
  Outcome to_root(const Operation& o);
  Outcome all_to_all(const Operation& o, size_t in_stride);
  Outcome point_to_point();
  Outcome reduce_part(const Operation& o, const std::vector<std::byte>& mine,
                      const std::vector<size_t>& begins, std::byte* out);

  std::shared_ptr<ncclComm> comm_;
  std::vector<Operation> operations_;
};

// How many times `count` elements are read here.
size_t Kernel::in_parts(const Operation& o) const {
  switch (o.call) {
    case Call::kBroadcast:
      return is_root(o) ? 1 : 0;
    case Call::kScatter:
      return is_root(o) ? ranks() : 0;
    case Call::kReduceScatter:
    case Call::kAllToAll:
      return ranks();
    case Call::kRecv:
      return 0;
    default:
      return 1;
  }
}

size_t Kernel::out_parts(const Operation& o) const {
  switch (o.call) {
    case Call::kReduce:
      return is_root(o) ? 1 : 0;
    case Call::kGather:
      return is_root(o) ? ranks() : 0;
    case Call::kAllGather:
    case Call::kAllToAll:
      return ranks();
    case Call::kSend:
      return 0;
    default:
      return 1;
  }
}

bool Kernel::reachable(const Operation& o) const {
  return device_can_reach(o.in, o.bytes() * in_parts(o)) &&
         device_can_reach(o.out, o.bytes() * out_parts(o));
}

Outcome Kernel::collective(const Operation& o) {
  switch (o.call) {
    case Call::kAllReduce:
      return all_reduce(o);
    case Call::kReduce:
      return reduce_to_root(o);
    case Call::kReduceScatter:
      return reduce_scatter(o);
    case Call::kBroadcast:
      return from_root(o, 0);
    case Call::kScatter:
      return from_root(o, o.bytes());
    case Call::kGather:
      return to_root(o);
    case Call::kAllGather:
      return all_to_all(o, 0);
    case Call::kAllToAll:
      return all_to_all(o, o.bytes());
    default:
      return Outcome::kDone;
  }
}

// Sends each rank its part of `mine` (begins[r] to begins[r + 1]), and reduces this rank's part of
// everybody's into `out`.
Outcome Kernel::reduce_part(const Operation& o, const std::vector<std::byte>& mine,
                            const std::vector<size_t>& begins, std::byte* out) {
  size_t size = size_of_type(o.type);
  size_t count = begins[me() + 1] - begins[me()];
  std::vector<std::vector<std::byte>> theirs(ranks());
  std::vector<const std::byte*> inputs(ranks());
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks(); ++r) {
    inputs[r] = mine.data() + begins[r] * size;
    if (r == me()) continue;
    pieces.push_back(Piece::to(fd(r), inputs[r], (begins[r + 1] - begins[r]) * size));
    theirs[r].resize(count * size);
    inputs[r] = theirs[r].data();
    pieces.push_back(Piece::from(fd(r), theirs[r].data(), theirs[r].size()));
  }
  Outcome outcome = move(std::move(pieces));
  if (outcome == Outcome::kDone) reduce(o.reduction, o.type, inputs, out, count);
  return outcome;
}

Outcome Kernel::all_reduce(const Operation& o) {
  size_t size = size_of_type(o.type);
  std::vector<size_t> begins;
  for (size_t r = 0; r <= ranks(); ++r)
    begins.push_back(o.count * r / ranks());
  auto* out = static_cast<std::byte*>(o.out);
  Outcome outcome = reduce_part(o, contribution(o.reduction, o.type, comm_->ranks, o.in, o.count),
                                begins, out + begins[me()] * size);
  if (outcome != Outcome::kDone) return outcome;
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks(); ++r) {
    if (r == me()) continue;
    pieces.push_back(
        Piece::to(fd(r), out + begins[me()] * size, (begins[me() + 1] - begins[me()]) * size));
    pieces.push_back(
        Piece::from(fd(r), out + begins[r] * size, (begins[r + 1] - begins[r]) * size));
  }
  return move(std::move(pieces));
}

Outcome Kernel::reduce_scatter(const Operation& o) {
  std::vector<size_t> begins;
  for (size_t r = 0; r <= ranks(); ++r)
    begins.push_back(o.count * r);
  return reduce_part(o, contribution(o.reduction, o.type, comm_->ranks, o.in, o.count * ranks()),
                     begins, static_cast<std::byte*>(o.out));
}

// All of it is the root's part.
Outcome Kernel::reduce_to_root(const Operation& o) {
  std::vector<size_t> begins;
  for (size_t r = 0; r <= ranks(); ++r) {
    begins.push_back(r > static_cast<size_t>(o.root_or_peer) ? o.count : 0);
  }
  return reduce_part(o, contribution(o.reduction, o.type, comm_->ranks, o.in, o.count), begins,
                     static_cast<std::byte*>(o.out));
}

// The root sends each rank what lies at rank * stride.
Outcome Kernel::from_root(const Operation& o, size_t stride) {
  auto root = static_cast<size_t>(o.root_or_peer);
  if (!is_root(o)) return move({Piece::from(fd(root), o.out, o.bytes())});
  const auto* in = static_cast<const std::byte*>(o.in);
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks(); ++r) {
    if (r != me()) pieces.push_back(Piece::to(fd(r), in + r * stride, o.bytes()));
  }
  Outcome outcome = move(std::move(pieces));
  std::memmove(o.out, in + me() * stride, o.bytes());
  return outcome;
}

Outcome Kernel::to_root(const Operation& o) {
  if (!is_root(o))
    return move({Piece::to(fd(static_cast<size_t>(o.root_or_peer)), o.in, o.bytes())});
  auto* out = static_cast<std::byte*>(o.out);
  std::memmove(out + me() * o.bytes(), o.in, o.bytes());
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks(); ++r) {
    if (r != me()) pieces.push_back(Piece::from(fd(r), out + r * o.bytes(), o.bytes()));
  }
  return move(std::move(pieces));
}

// Each rank gets what lies at its rank * in_stride; what rank r sends arrives in part r.
Outcome Kernel::all_to_all(const Operation& o, size_t in_stride) {
  const auto* in = static_cast<const std::byte*>(o.in);
  auto* out = static_cast<std::byte*>(o.out);
  std::memmove(out + me() * o.bytes(), in + me() * in_stride, o.bytes());
  std::vector<Piece> pieces;
  for (size_t r = 0; r < ranks(); ++r) {
    if (r == me()) continue;
    pieces.push_back(Piece::to(fd(r), in + r * in_stride, o.bytes()));
    pieces.push_back(Piece::from(fd(r), out + r * o.bytes(), o.bytes()));
  }
  return move(std::move(pieces));
}

Outcome Kernel::point_to_point() {
  std::vector<Piece> pieces;
  std::deque<const Operation*> to_self;
  std::deque<const Operation*> from_self;
  for (const Operation& o : operations_) {
    if (!o.point_to_point()) continue;
    bool send = o.call == Call::kSend;
    if (o.root_or_peer == comm_->rank) {
      (send ? to_self : from_self).push_back(&o);
      continue;
    }
    int peer = comm_->links->fd(Channel::kPointToPoint, o.root_or_peer);
    pieces.push_back(send ? Piece::to(peer, o.in, o.bytes()) : Piece::from(peer, o.out, o.bytes()));
  }
  while (!to_self.empty() && !from_self.empty()) {
    size_t bytes = std::min(to_self.front()->bytes(), from_self.front()->bytes());
    if (bytes > 0) std::memmove(from_self.front()->out, to_self.front()->in, bytes);
    to_self.pop_front();
    from_self.pop_front();
  }
  Outcome outcome = move(std::move(pieces));
  if (to_self.empty() && from_self.empty()) return outcome;
  comm_->stop_kernels.wait();  // half of a message to oneself
  return Outcome::kStopped;
}

// Whom these operations need, on which channel.
ncclResult_t connect_peers(ncclComm& comm, const std::vector<Operation>& operations) {
  std::vector<int> everybody(static_cast<size_t>(comm.ranks));
  std::vector<int> peers;
  std::iota(everybody.begin(), everybody.end(), 0);
  bool collective = false;
  for (const Operation& o : operations) {
    if (o.point_to_point()) peers.push_back(o.root_or_peer);
    collective |= !o.point_to_point() && o.count > 0;
  }
  Outcome outcome = Outcome::kDone;
  if (collective) outcome = comm.links->open(Channel::kCollectives, everybody, comm.stop_kernels);
  if (outcome == Outcome::kDone) {
    outcome = comm.links->open(Channel::kPointToPoint, peers, comm.stop_kernels);
  }
  return result_of(outcome, "while connecting");
}

}  // namespace

ncclResult_t launch(const std::shared_ptr<ncclComm>& comm,
                    const std::vector<Operation>& operations) {
  cudaSetDevice(comm->device);
  ncclResult_t connected = connect_peers(*comm, operations);
  if (connected != ncclSuccess) return connected;
  // Of several streams the first runs the kernel; the others come before it and after it.
  cudaStream_t main_stream = operations.front().stream;
  std::vector<cudaStream_t> others;
  for (const Operation& o : operations) {
    bool known = o.stream == main_stream || std::count(others.begin(), others.end(), o.stream) > 0;
    if (!known) others.push_back(o.stream);
  }
  auto nothing = [] { return cudaSuccess; };
  Moments after = comm->last_kernels();
  for (cudaStream_t other : others) {
    std::shared_ptr<const Moment> reached = enqueue(other, nothing);
    if (!reached) return cuda_failure(cudaErrorInvalidResourceHandle);
    after.push_back(std::move(reached));
  }
  std::shared_ptr<const Moment> done = enqueue(main_stream, Kernel(comm, operations), after);
  if (!done) return cuda_failure(cudaErrorInvalidResourceHandle);
  for (cudaStream_t other : others)
    enqueue(other, nothing, {done});
  std::lock_guard lock(comm->mutex);
  comm->kernels = {done};
  return ncclSuccess;
}

}  // namespace doubles
