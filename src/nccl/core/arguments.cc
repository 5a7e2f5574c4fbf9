// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/arguments.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace muster::comm::detail {
namespace {

using Problem = std::optional<Error>;

constexpr size_t kMaxName = 256;  // bytes; the worker's page keeps the first 63

Problem wrong(OpKind kind, const char* argument, const std::string& what) {
  return invalid(std::string(to_string(kind)) + ": " + argument + ": " + what);
}

bool is_root(const Operation& operation, int rank) {
  return operation.root_or_peer == rank;
}

bool uses_in(const Operation& operation, int rank) {
  switch (operation.kind) {
    case OpKind::kRecv:
    case OpKind::kBarrier:
      return false;
    case OpKind::kBroadcast:
    case OpKind::kScatter:
      return is_root(operation, rank);
    default:
      return true;
  }
}

bool uses_out(const Operation& operation, int rank) {
  switch (operation.kind) {
    case OpKind::kSend:
    case OpKind::kBarrier:
      return false;
    case OpKind::kReduce:
    case OpKind::kGather:
      return is_root(operation, rank);
    default:
      return true;
  }
}

Problem check_buffer(OpKind kind, const char* name, const ConstBuffer& buffer, Backend backend) {
  if (static_cast<int>(buffer.type) >= kDataTypes)
    return wrong(kind, name, "unknown element type " + std::to_string(int(buffer.type)));
  if (buffer.count > std::numeric_limits<ptrdiff_t>::max() / size_of(buffer.type))
    return wrong(kind, name, std::to_string(buffer.count) + " elements are more than memory has");
  if (buffer.data == nullptr && buffer.count > 0)
    return wrong(kind, name, "null with " + std::to_string(buffer.count) + " elements");
  if (buffer.memory == Memory::kDevice && backend == Backend::kGloo)
    return wrong(kind, name, "device memory; the backend gloo works on host memory");
  if (buffer.memory == Memory::kHost && backend == Backend::kNccl)
    return wrong(kind, name, "host memory; the backend nccl works on device memory (device())");
  return {};
}

Problem check_rank(const Operation& operation, const Caller& caller) {
  const OpKind kind = operation.kind;
  const bool root = kind == OpKind::kBroadcast || kind == OpKind::kReduce ||
                    kind == OpKind::kScatter || kind == OpKind::kGather;
  if (!root && !operation.point_to_point()) return {};
  const int rank = operation.root_or_peer;
  const char* name = root ? "root" : "peer";
  if (rank < 0 || rank >= caller.size)
    return wrong(kind, name, "rank " + std::to_string(rank) + " of " + std::to_string(caller.size));
  if (root) return {};
  if (rank == caller.rank)
    return wrong(kind, name, "rank " + std::to_string(rank) + " is this one");
  if (operation.tag < 0)
    return wrong(kind, "tag", std::to_string(operation.tag) + ": it must not be negative");
  if (operation.tag != 0 && caller.backend == Backend::kNccl)
    return wrong(kind, "tag", std::to_string(operation.tag) + ": the backend nccl takes only 0");
  return {};
}

Problem expect(OpKind kind, const char* name, size_t is, size_t must, const std::string& why) {
  if (is == must) return {};
  return wrong(
      kind, name,
      std::to_string(is) + " elements, it must be " + std::to_string(must) + " (" + why + ")");
}

size_t sum(const std::vector<size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

// `whole` is one part for each rank.
Problem expect_parts(OpKind kind, const char* name, size_t whole, size_t part, int size) {
  return expect(kind, name, whole, part * static_cast<size_t>(size),
                std::to_string(size) + " ranks, " + std::to_string(part) + " each");
}

Problem check_counted(const Operation& operation, const char* whole_name, size_t whole,
                      const char* part_name, size_t part, const Caller& caller) {
  if (operation.counts.empty())
    return expect_parts(operation.kind, whole_name, whole, part, caller.size);
  if (Problem problem =
          expect(operation.kind, whole_name, whole, sum(operation.counts), "the sum of counts"))
    return problem;
  return expect(operation.kind, part_name, part, operation.counts[static_cast<size_t>(caller.rank)],
                "counts[rank()]");
}

Problem check_all_to_all(const Operation& operation, const Caller& caller) {
  const OpKind kind = operation.kind;
  if (!operation.counts.empty()) {
    if (Problem problem =
            expect(kind, "in", operation.in.count, sum(operation.counts), "the sum of in_counts"))
      return problem;
    return expect(kind, "out", operation.out.count, sum(operation.out_counts),
                  "the sum of out_counts");
  }
  if (Problem problem = expect(kind, "out", operation.out.count, operation.in.count, "as in"))
    return problem;
  if (operation.in.count % static_cast<size_t>(caller.size) == 0) return {};
  return wrong(kind, "in",
               std::to_string(operation.in.count) +
                   " elements are not the same number for each of " + std::to_string(caller.size) +
                   " ranks");
}

Problem check_sizes(const Operation& operation, const Caller& caller) {
  const size_t in = operation.in.count;
  const size_t out = operation.out.count;
  const bool root = is_root(operation, caller.rank);
  switch (operation.kind) {
    case OpKind::kReduce:
      return root ? expect(operation.kind, "out", out, in, "as in") : Problem();
    case OpKind::kAllReduce:
      return expect(operation.kind, "out", out, in, "as in");
    case OpKind::kScatter:
      return root ? expect_parts(operation.kind, "in", in, out, caller.size) : Problem();
    case OpKind::kGather:
      return root ? expect_parts(operation.kind, "out", out, in, caller.size) : Problem();
    case OpKind::kAllGather:
      return check_counted(operation, "out", out, "in", in, caller);
    case OpKind::kReduceScatter:
      return check_counted(operation, "in", in, "out", out, caller);
    case OpKind::kAllToAll:
      return check_all_to_all(operation, caller);
    default:
      return {};
  }
}

// Both buffers are used here.
Problem check_pair(const Operation& operation) {
  const ConstBuffer& in = operation.in;
  const Buffer& out = operation.out;
  if (in.type != out.type)
    return wrong(operation.kind, "out",
                 std::string(to_string(out.type)) + ", but in is " + to_string(in.type));
  if (in.memory == Memory::kDevice && in.stream != out.stream)
    return wrong(operation.kind, "out", "it is on another stream than in");
  const auto* in_begin = static_cast<const std::byte*>(in.data);
  const auto* out_begin = static_cast<const std::byte*>(out.data);
  const std::less<> before;
  const bool apart = in.count == 0 || out.count == 0 ||
                     !before(in_begin, out_begin + out.bytes()) ||
                     !before(out_begin, in_begin + in.bytes());
  const bool in_place = operation.kind == OpKind::kReduce || operation.kind == OpKind::kAllReduce ||
                        operation.kind == OpKind::kBroadcast;
  if (apart || (in_place && in_begin == out_begin)) return {};
  return wrong(
      operation.kind, "out",
      in_place ? "it overlaps in without being the same memory" : "it must not overlap in");
}

Problem check_reduction(const Operation& operation) {
  const OpKind kind = operation.kind;
  if (kind != OpKind::kReduce && kind != OpKind::kAllReduce && kind != OpKind::kReduceScatter)
    return {};
  if (operation.reduce <= ReduceOp::kAverage) return {};
  return wrong(kind, "op", "unknown reduction " + std::to_string(int(operation.reduce)));
}

}  // namespace

Error invalid(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

std::optional<Error> check_operation(const Operation& operation, const Caller& caller) {
  if (operation.kind == OpKind::kBarrier) return {};
  const OpKind kind = operation.kind;
  const bool in = uses_in(operation, caller.rank);
  const bool out = uses_out(operation, caller.rank);
  const char* name = kind == OpKind::kBroadcast ? "buffer" : nullptr;
  if (Problem problem = check_rank(operation, caller)) return problem;
  if (Problem problem = check_reduction(operation)) return problem;
  if (in)
    if (Problem problem =
            check_buffer(kind, name != nullptr ? name : "in", operation.in, caller.backend))
      return problem;
  if (out)
    if (Problem problem =
            check_buffer(kind, name != nullptr ? name : "out", operation.out, caller.backend))
      return problem;
  if (Problem problem = check_sizes(operation, caller)) return problem;
  if (in && out) return check_pair(operation);
  return {};
}

void drop_unused(Operation& operation, int rank) {
  if (!uses_in(operation, rank)) operation.in = ConstBuffer();
  if (!uses_out(operation, rank)) operation.out = Buffer();
}

std::optional<Error> check_counts(OpKind kind, const char* name, std::span<const size_t> counts,
                                  int size) {
  if (counts.size() != static_cast<size_t>(size))
    return wrong(kind, name,
                 std::to_string(counts.size()) + " of them, it must be one for each of " +
                     std::to_string(size) + " ranks");
  size_t left = std::numeric_limits<ptrdiff_t>::max() / sizeof(double);
  for (const size_t count : counts) {
    if (count > left) return wrong(kind, name, "their sum is more than memory has");
    left -= count;
  }
  return {};
}

std::optional<Error> check_members(const char* call, std::span<const int> ranks, int size,
                                   int rank) {
  const std::string begin = std::string(call) + ": ranks: ";
  if (ranks.empty()) return invalid(begin + "nobody");
  std::vector<bool> seen(static_cast<size_t>(size));
  for (const int member : ranks) {
    if (member < 0 || member >= size)
      return invalid(begin + "rank " + std::to_string(member) + " of " + std::to_string(size));
    if (seen[static_cast<size_t>(member)])
      return invalid(begin + "rank " + std::to_string(member) + " twice");
    seen[static_cast<size_t>(member)] = true;
  }
  if (!seen[static_cast<size_t>(rank)])
    return invalid(begin + "rank " + std::to_string(rank) +
                   ", this one, is not among them; only members call it");
  return {};
}

std::optional<Error> check_excluded(std::span<const int> excluded, int size, int rank) {
  const std::string begin = "shrink: excluded: ";
  if (excluded.empty()) return invalid(begin + "nobody");
  for (const int left_out : excluded) {
    if (left_out < 0 || left_out >= size)
      return invalid(begin + "rank " + std::to_string(left_out) + " of " + std::to_string(size));
    if (left_out == rank)
      return invalid(begin + "rank " + std::to_string(rank) +
                     " is this one; only those who stay call it");
    if (std::count(excluded.begin(), excluded.end(), left_out) > 1)
      return invalid(begin + "rank " + std::to_string(left_out) + " twice");
  }
  return {};
}

std::optional<Error> check_joining(std::span<const int> joining, std::span<const int> members,
                                   int world_size) {
  const std::string begin = "grow: joining_world_ranks: ";
  if (joining.empty()) return invalid(begin + "nobody");
  for (const int rank : joining) {
    const std::string text = begin + "rank " + std::to_string(rank);
    if (rank < 0 || rank >= world_size)
      return invalid(text + " of a world of " + std::to_string(world_size));
    if (std::find(members.begin(), members.end(), rank) != members.end())
      return invalid(text + " is a member already");
    if (std::count(joining.begin(), joining.end(), rank) > 1) return invalid(text + " twice");
  }
  return {};
}

std::optional<Error> check_timeout(const std::string& name, Duration timeout) {
  if (timeout.count() > 0) return {};
  return invalid(name + ": " + std::to_string(timeout.count()) + " ms: it must be positive");
}

std::optional<Error> check_options(const char* call, const CommunicatorOptions& options) {
  const std::string begin = std::string(call) + ": options.";
  if (Problem problem = check_timeout(begin + "timeout", options.timeout)) return problem;
  if (options.operation_timeout)
    if (Problem problem = check_timeout(begin + "operation_timeout", *options.operation_timeout))
      return problem;
  if (options.name.size() > kMaxName)
    return invalid(begin + "name: longer than " + std::to_string(kMaxName) + " bytes");
  if (options.init_roots < 1)
    return invalid(begin + "init_roots: " + std::to_string(options.init_roots) +
                   ": it must be at least 1");
  return {};
}

}  // namespace muster::comm::detail
