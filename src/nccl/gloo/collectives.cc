// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/collectives.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>

#include <cstring>
#include <numeric>

#include "nccl/gloo/exchange.h"
#include "nccl/gloo/reduction.h"

namespace muster::comm::detail {
namespace {

// Gloo asks for the type of what it only sends or receives, and does nothing with it but its size.
uint8_t* bytes_of(const void* data) {
  return static_cast<uint8_t*>(const_cast<void*>(data));
}

void copy(const Buffer& out, const ConstBuffer& in) {
  if (in.count > 0 && out.data != in.data) std::memmove(out.data, in.data, in.bytes());
}

void broadcast(Mesh& mesh, const Operation& operation) {
  gloo::BroadcastOptions options(mesh.context());
  options.setOutput(bytes_of(operation.out.data), operation.out.bytes());
  options.setRoot(operation.root_or_peer);
  options.setTag(collective_tag(operation));
  gloo::broadcast(options);
}

template <typename Bits>
void all_reduce_as(Mesh& mesh, const Operation& operation) {
  const Buffer& out = operation.out;
  gloo::AllreduceOptions options(mesh.context());
  if (operation.in.data != nullptr && operation.in.data != out.data) {
    options.setInput(static_cast<Bits*>(const_cast<void*>(operation.in.data)), out.count);
  }
  options.setOutput(static_cast<Bits*>(out.data), out.count);
  options.setReduceFunction(reduce_function(out.type, operation.reduce));
  options.setTag(collective_tag(operation));
  gloo::allreduce(options);
  if (operation.reduce == ReduceOp::kAverage) divide(out.data, out.count, out.type, mesh.size());
}

void all_gather_parts(Mesh& mesh, const Operation& operation, const std::vector<size_t>& counts) {
  const size_t element = size_of(operation.out.type);
  std::vector<size_t> bytes = counts;
  for (size_t& part : bytes)
    part *= element;
  gloo::AllgathervOptions options(mesh.context());
  const auto rank = static_cast<size_t>(mesh.rank());
  const size_t offset = std::accumulate(bytes.begin(), bytes.begin() + mesh.rank(), size_t{0});
  auto* own = bytes_of(operation.out.data) + offset;
  if (operation.in.data != nullptr && operation.in.data != own && bytes[rank] > 0) {
    std::memmove(own, operation.in.data, bytes[rank]);
  }
  options.setOutput(bytes_of(operation.out.data), std::move(bytes));
  options.setTag(collective_tag(operation));
  gloo::allgatherv(options);
}

// Each rank reduces a part and sends it to all: as many bytes as Gloo's ring, but each number is
// rounded once, and where it was rounded all get it from.
void all_reduce_16_bits(Mesh& mesh, const Operation& operation, Deadline deadline) {
  const Buffer& out = operation.out;
  const void* in = operation.in.data != nullptr ? operation.in.data : out.data;
  const std::vector<size_t> counts = even_parts(out.count, mesh.size());
  const size_t before = std::accumulate(counts.begin(), counts.begin() + mesh.rank(), size_t{0});
  reduce_parts(mesh,
               {.in = in,
                .out = bytes_of(out.data) + before * size_of(out.type),
                .counts = counts,
                .type = out.type,
                .op = operation.reduce,
                .tag = collective_tag(operation)},
               deadline);
  Operation gathering = operation;
  gathering.in = {};
  gathering.counts = counts;
  all_gather_parts(mesh, gathering, counts);
}

void all_reduce(Mesh& mesh, const Operation& operation, Deadline deadline) {
  if (needs_float(operation.out.type, operation.reduce)) {
    return all_reduce_16_bits(mesh, operation, deadline);
  }
  switch (size_of(operation.out.type)) {
    case 1:
      return all_reduce_as<uint8_t>(mesh, operation);
    case 2:
      return all_reduce_as<uint16_t>(mesh, operation);
    case 4:
      return all_reduce_as<uint32_t>(mesh, operation);
    default:
      return all_reduce_as<uint64_t>(mesh, operation);
  }
}

// Each rank reduces a part, the root collects them. Gloo's own does the same round a ring, but
// overwrites the output on every rank, which only the root has here.
void reduce(Mesh& mesh, const Operation& operation, Deadline deadline) {
  const ConstBuffer& in = operation.in;
  const size_t element = size_of(in.type);
  const bool root = mesh.rank() == operation.root_or_peer;
  const std::vector<size_t> counts = even_parts(in.count, mesh.size());
  const size_t before = std::accumulate(counts.begin(), counts.begin() + mesh.rank(), size_t{0});
  std::vector<std::byte> space;
  if (!root) space.resize(counts[static_cast<size_t>(mesh.rank())] * element);
  void* mine =
      root ? bytes_of(operation.out.data) + before * element : static_cast<void*>(space.data());
  const uint32_t tag = collective_tag(operation);
  reduce_parts(mesh,
               {.in = in.data,
                .out = mine,
                .counts = counts,
                .type = in.type,
                .op = operation.reduce,
                .tag = tag},
               deadline);
  std::vector<size_t> bytes = counts;
  for (size_t& part : bytes)
    part *= element;
  gather_parts(mesh, mine, operation.out.data, bytes, operation.root_or_peer, tag, deadline);
}

void scatter(Mesh& mesh, const Operation& operation) {
  const size_t bytes = operation.out.bytes();
  gloo::ScatterOptions options(mesh.context());
  std::vector<uint8_t*> parts;
  if (mesh.rank() == operation.root_or_peer) {
    for (size_t rank = 0; rank < static_cast<size_t>(mesh.size()); ++rank) {
      parts.push_back(bytes_of(operation.in.data) + rank * bytes);
    }
    options.setInputs(parts, bytes);
  }
  options.setOutput(bytes_of(operation.out.data), bytes);
  options.setRoot(operation.root_or_peer);
  options.setTag(collective_tag(operation));
  gloo::scatter(options);
}

void gather(Mesh& mesh, const Operation& operation) {
  gloo::GatherOptions options(mesh.context());
  options.setInput(bytes_of(operation.in.data), operation.in.bytes());
  if (mesh.rank() == operation.root_or_peer) {
    options.setOutput(bytes_of(operation.out.data), operation.out.bytes());
  }
  options.setRoot(operation.root_or_peer);
  options.setTag(collective_tag(operation));
  gloo::gather(options);
}

void all_gather(Mesh& mesh, const Operation& operation) {
  if (!operation.counts.empty()) return all_gather_parts(mesh, operation, operation.counts);
  gloo::AllgatherOptions options(mesh.context());
  options.setInput(bytes_of(operation.in.data), operation.in.bytes());
  options.setOutput(bytes_of(operation.out.data), operation.out.bytes());
  options.setTag(collective_tag(operation));
  gloo::allgather(options);
}

void reduce_scatter(Mesh& mesh, const Operation& operation, Deadline deadline) {
  const std::vector<size_t> counts =
      operation.counts.empty() ? even_parts(operation.in.count, mesh.size()) : operation.counts;
  reduce_parts(mesh,
               {.in = operation.in.data,
                .out = operation.out.data,
                .counts = counts,
                .type = operation.in.type,
                .op = operation.reduce,
                .tag = collective_tag(operation)},
               deadline);
}

void barrier(Mesh& mesh, const Operation& operation) {
  gloo::BarrierOptions options(mesh.context());
  options.setTag(collective_tag(operation));
  gloo::barrier(options);
}

// The same answer on all ranks, so that none waits for another that has nothing to do.
bool empty(const Operation& operation) {
  if (operation.kind == OpKind::kBarrier || operation.kind == OpKind::kAllToAll) return false;
  if (!operation.counts.empty()) {
    return std::accumulate(operation.counts.begin(), operation.counts.end(), size_t{0}) == 0;
  }
  const bool takes = operation.kind == OpKind::kScatter || operation.kind == OpKind::kBroadcast ||
                     operation.kind == OpKind::kAllReduce ||
                     operation.kind == OpKind::kReduceScatter;
  return (takes ? operation.out.count : operation.in.count) == 0;
}

}  // namespace

void perform(Mesh& mesh, const Operation& operation, Deadline deadline) {
  if (empty(operation)) return;
  mesh.transport().set_deadline(deadline);
  switch (operation.kind) {
    case OpKind::kBroadcast:
      return broadcast(mesh, operation);
    case OpKind::kReduce:
      return reduce(mesh, operation, deadline);
    case OpKind::kAllReduce:
      return all_reduce(mesh, operation, deadline);
    case OpKind::kScatter:
      return scatter(mesh, operation);
    case OpKind::kGather:
      return gather(mesh, operation);
    case OpKind::kAllGather:
      return all_gather(mesh, operation);
    case OpKind::kReduceScatter:
      return reduce_scatter(mesh, operation, deadline);
    case OpKind::kAllToAll:
      return all_to_all(mesh, operation, deadline);
    case OpKind::kBarrier:
      return barrier(mesh, operation);
    case OpKind::kSend:
    case OpKind::kRecv:
      return;  // Messages
  }
}

void perform_alone(const Operation& operation) {
  switch (operation.kind) {
    case OpKind::kReduce:
    case OpKind::kAllReduce:
    case OpKind::kScatter:
    case OpKind::kGather:
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kAllToAll:
      if (operation.in.data != nullptr) copy(operation.out, operation.in);
      return;
    case OpKind::kBroadcast:
    case OpKind::kBarrier:
    case OpKind::kSend:
    case OpKind::kRecv:
      return;
  }
}

}  // namespace muster::comm::detail
