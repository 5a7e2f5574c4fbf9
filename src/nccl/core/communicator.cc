// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/communicator.h>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/group.h"
#include "store/deadline.h"

namespace muster::comm {

using detail::Operation;
using detail::OpKind;

namespace {

OpOptions in_background(OpOptions options) {
  options.async = true;
  return options;
}

Operation message(OpKind kind, int peer, int tag) {
  Operation operation;
  operation.kind = kind;
  operation.root_or_peer = peer;
  operation.tag = tag;
  return operation;
}

Operation collective(OpKind kind, ConstBuffer in, Buffer out) {
  Operation operation;
  operation.kind = kind;
  operation.in = in;
  operation.out = out;
  return operation;
}

Operation rooted(OpKind kind, ConstBuffer in, Buffer out, int root) {
  Operation operation = collective(kind, in, out);
  operation.root_or_peer = root;
  return operation;
}

Operation reduction(OpKind kind, ConstBuffer in, Buffer out, ReduceOp op) {
  Operation operation = collective(kind, in, out);
  operation.reduce = op;
  return operation;
}

}  // namespace

P2p P2p::send(ConstBuffer buffer, int peer, int tag) {
  P2p one{Kind::kSend, {}, peer, tag};
  // Never written to; a P2p has one member for both directions.
  one.buffer = Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.type);
  one.buffer.memory = buffer.memory;
  one.buffer.stream = buffer.stream;
  return one;
}

P2p P2p::recv(Buffer buffer, int peer, int tag) {
  return {Kind::kRecv, buffer, peer, tag};
}

Communicator::Communicator(std::shared_ptr<detail::CommunicatorImpl> impl)
    : impl_(std::move(impl)) {}

Communicator::Communicator(Communicator&&) noexcept = default;

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  Communicator old(std::move(*this));  // ends as any other
  impl_ = std::move(other.impl_);
  return *this;
}

Communicator::~Communicator() {
  if (impl_ != nullptr && !impl_->finished())
    static_cast<void>(abort("it was dropped without close()"));
}

int Communicator::rank() const {
  return impl_->plan().rank;
}
int Communicator::size() const {
  return impl_->plan().size;
}
Backend Communicator::backend() const {
  return impl_->parts().kind;
}
const std::string& Communicator::name() const {
  return impl_->plan().name;
}
const std::vector<int>& Communicator::ranks() const {
  return impl_->plan().world_ranks;
}
const InitTimings& Communicator::init_timings() const {
  return impl_->parts().timings;
}

Work Communicator::send(ConstBuffer in, int peer, int tag, OpOptions options) {
  Operation operation = message(OpKind::kSend, peer, tag);
  operation.in = in;
  return impl_->call(std::move(operation), options);
}

Work Communicator::recv(Buffer out, int peer, int tag, OpOptions options) {
  Operation operation = message(OpKind::kRecv, peer, tag);
  operation.out = out;
  return impl_->call(std::move(operation), options);
}

Work Communicator::isend(ConstBuffer in, int peer, int tag, OpOptions options) {
  return send(in, peer, tag, in_background(options));
}

Work Communicator::irecv(Buffer out, int peer, int tag, OpOptions options) {
  return recv(out, peer, tag, in_background(options));
}

Work Communicator::batch(std::span<const P2p> operations, OpOptions options) {
  std::vector<Operation> list;
  list.reserve(operations.size());
  for (const P2p& each : operations) {
    const bool sends = each.kind == P2p::Kind::kSend;
    Operation operation = message(sends ? OpKind::kSend : OpKind::kRecv, each.peer, each.tag);
    if (sends)
      operation.in = each.buffer;
    else
      operation.out = each.buffer;
    list.push_back(std::move(operation));
  }
  return impl_->call_together(std::move(list), options);
}

Work Communicator::broadcast(Buffer buffer, int root, OpOptions options) {
  return impl_->call(rooted(OpKind::kBroadcast, buffer, buffer, root), options);
}

Work Communicator::reduce(ConstBuffer in, Buffer out, ReduceOp op, int root, OpOptions options) {
  Operation operation = rooted(OpKind::kReduce, in, out, root);
  operation.reduce = op;
  return impl_->call(std::move(operation), options);
}

Work Communicator::all_reduce(Buffer buffer, ReduceOp op, OpOptions options) {
  return impl_->call(reduction(OpKind::kAllReduce, buffer, buffer, op), options);
}

Work Communicator::all_reduce(ConstBuffer in, Buffer out, ReduceOp op, OpOptions options) {
  return impl_->call(reduction(OpKind::kAllReduce, in, out, op), options);
}

Work Communicator::scatter(ConstBuffer in, Buffer out, int root, OpOptions options) {
  return impl_->call(rooted(OpKind::kScatter, in, out, root), options);
}

Work Communicator::gather(ConstBuffer in, Buffer out, int root, OpOptions options) {
  return impl_->call(rooted(OpKind::kGather, in, out, root), options);
}

Work Communicator::all_gather(ConstBuffer in, Buffer out, OpOptions options) {
  return impl_->call(collective(OpKind::kAllGather, in, out), options);
}

Work Communicator::all_gather(ConstBuffer in, Buffer out, std::span<const size_t> counts,
                              OpOptions options) {
  if (auto problem = detail::check_counts(OpKind::kAllGather, "counts", counts, size()))
    return impl_->refuse(*std::move(problem));
  Operation operation = collective(OpKind::kAllGather, in, out);
  operation.counts.assign(counts.begin(), counts.end());
  return impl_->call(std::move(operation), options);
}

Work Communicator::reduce_scatter(ConstBuffer in, Buffer out, ReduceOp op, OpOptions options) {
  return impl_->call(reduction(OpKind::kReduceScatter, in, out, op), options);
}

Work Communicator::reduce_scatter(ConstBuffer in, Buffer out, std::span<const size_t> counts,
                                  ReduceOp op, OpOptions options) {
  if (auto problem = detail::check_counts(OpKind::kReduceScatter, "counts", counts, size()))
    return impl_->refuse(*std::move(problem));
  Operation operation = reduction(OpKind::kReduceScatter, in, out, op);
  operation.counts.assign(counts.begin(), counts.end());
  return impl_->call(std::move(operation), options);
}

Work Communicator::all_to_all(ConstBuffer in, Buffer out, OpOptions options) {
  return impl_->call(collective(OpKind::kAllToAll, in, out), options);
}

Work Communicator::all_to_all(ConstBuffer in, std::span<const size_t> in_counts, Buffer out,
                              std::span<const size_t> out_counts, OpOptions options) {
  if (auto problem = detail::check_counts(OpKind::kAllToAll, "in_counts", in_counts, size()))
    return impl_->refuse(*std::move(problem));
  if (auto problem = detail::check_counts(OpKind::kAllToAll, "out_counts", out_counts, size()))
    return impl_->refuse(*std::move(problem));
  Operation operation = collective(OpKind::kAllToAll, in, out);
  operation.counts.assign(in_counts.begin(), in_counts.end());
  operation.out_counts.assign(out_counts.begin(), out_counts.end());
  return impl_->call(std::move(operation), options);
}

Work Communicator::barrier(OpOptions options) {
  Work work = impl_->call(Operation(), options);
  if (options.async || !impl_->backend().stream_ordered() ||
      detail::OpenGroup::current() != nullptr)
    return work;
  if (Result<void> result = work.wait(); !result) return result.error();
  return {};
}

Result<Communicator> Communicator::new_group(std::span<const int> ranks,
                                             CommunicatorOptions options) {
  return detail::new_group(*impl_, ranks, std::move(options));
}

Result<std::optional<Communicator>> Communicator::split(int color, int key,
                                                        CommunicatorOptions options) {
  return detail::split(*impl_, color, key, std::move(options));
}

Result<Communicator> Communicator::shrink(std::span<const int> excluded,
                                          CommunicatorOptions options) {
  return detail::shrink(*impl_, excluded, std::move(options));
}

Result<Communicator> Communicator::grow(std::span<const int> joining_world_ranks,
                                        CommunicatorOptions options) {
  return detail::grow(*impl_, joining_world_ranks, std::move(options));
}

Result<RegisteredBuffer> Communicator::register_buffer(Buffer buffer) {
  if (std::optional<Error> problem = impl_->refusal("register_buffer")) return *std::move(problem);
  Result<std::shared_ptr<void>> handle = impl_->backend().register_buffer(buffer);
  if (!handle) return std::move(handle).error();
  return RegisteredBuffer(std::move(*handle));
}

Result<void> Communicator::revoke() {
  return impl_->revoke();
}

Result<void> Communicator::abort(std::string reason, Duration deadline) {
  Communicator* const self = this;
  return abort_all({&self, 1}, std::move(reason), deadline);
}

Result<void> Communicator::close() {
  return impl_->close();
}

Result<void> Communicator::status() const {
  return impl_->status();
}

Result<void> Communicator::abort_all(std::span<Communicator* const> communicators,
                                     std::string reason,  // NOLINT(*-value-param): as abort()'s
                                     Duration deadline) {
  const detail::Deadline until = deadline_in(deadline);
  for (Communicator* each : communicators)
    each->impl_->mark(reason);
  for (Communicator* each : communicators)
    each->impl_->stop();
  Result<void> first;
  for (Communicator* each : communicators)
    if (Result<void> freed = each->impl_->free(until); !freed && first) first = std::move(freed);
  return first;
}

}  // namespace muster::comm
