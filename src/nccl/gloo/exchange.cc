// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "nccl/gloo/reduction.h"

namespace muster::comm::detail {
namespace {

// What of a part comes at once. As Gloo has it: less costs more calls, more is out of the cache.
constexpr size_t kPieceBytes = 1024 * 1024;

size_t offset_of(std::span<const size_t> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, size_t{0});
}

// A piece of a part that comes from or goes to a peer; bytes from the beginning of that part.
struct Piece {
  int peer = 0;
  size_t offset = 0;
  size_t bytes = 0;
};

void add_pieces(std::vector<Piece>& pieces, int peer, size_t offset, size_t bytes) {
  for (size_t done = 0; done < bytes; done += kPieceBytes) {
    pieces.push_back({peer, offset + done, std::min(kPieceBytes, bytes - done)});
  }
}

// This rank's part as it grows: in `out` itself, or in float32 where the type loses too much.
class GrowingPart {
 public:
  GrowingPart(const PartsReduction& what, size_t count, const std::byte* own) : what_(what) {
    if (needs_float(what.type, what.op)) {
      wide_.resize(count);
      widen(wide_.data(), own, count, what.type);
    } else if (what.out != own && count > 0) {
      std::memcpy(what.out, own, count * size_of(what.type));
    }
  }
  void add(const std::byte* piece, size_t first, size_t count) {
    if (!wide_.empty()) {
      return accumulate(wide_.data() + first, piece, count, what_.type, what_.op);
    }
    auto* to = static_cast<std::byte*>(what_.out) + first * size_of(what_.type);
    reduce_function(what_.type, what_.op)(to, to, piece, count);
  }
  void finish(size_t count, int ranks) {
    if (!wide_.empty()) {
      narrow(what_.out, wide_.data(), count, what_.type, what_.op, ranks);
    } else if (what_.op == ReduceOp::kAverage) {
      divide(what_.out, count, what_.type, ranks);
    }
  }

 private:
  const PartsReduction& what_;
  std::vector<float> wide_;
};

}  // namespace

std::vector<size_t> even_parts(size_t count, int ranks) {
  const auto parts = static_cast<size_t>(ranks);
  std::vector<size_t> counts(parts, count / parts);
  for (size_t i = 0; i < count % parts; ++i)
    ++counts[i];
  return counts;
}

void reduce_parts(Mesh& mesh, const PartsReduction& what, Deadline deadline) {
  const int size = mesh.size();
  const int rank = mesh.rank();
  const size_t element = size_of(what.type);
  const size_t mine = what.counts[static_cast<size_t>(rank)];
  std::vector<Piece> in;
  std::vector<Piece> out;
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    add_pieces(out, to, offset_of(what.counts, to) * element,
               what.counts[static_cast<size_t>(to)] * element);
    add_pieces(in, (rank + size - step) % size, 0, mine * element);
  }
  const auto slot = [&](const Piece& piece) {
    return message_slot(SlotKind::kReduceScatter, what.tag, piece.bytes);
  };
  const size_t total = std::accumulate(what.counts.begin(), what.counts.end(), size_t{0});
  const auto* own = static_cast<const std::byte*>(what.in) + offset_of(what.counts, rank) * element;
  GrowingPart part(what, mine, own);
  const auto sending = mesh.transport().make_buffer(what.in, total * element, deadline);
  const size_t room = std::min(kPieceBytes, mine * element);
  std::vector<std::byte> space(2 * room);
  std::array<std::unique_ptr<WatchedBuffer>, 2> receiving;
  for (size_t i = 0; i < 2; ++i) {
    receiving[i] = mesh.transport().make_buffer(space.data() + i * room, room, deadline);
  }

  // All at once: who waits for a piece has then sent whatever others wait for.
  for (const Piece& piece : out)
    sending->send(piece.peer, slot(piece), piece.offset, piece.bytes);
  for (size_t i = 0; i <= in.size(); ++i) {
    if (i < in.size()) receiving[i % 2]->recv(in[i].peer, slot(in[i]), 0, in[i].bytes);
    if (i == 0) continue;
    const Piece& piece = in[i - 1];
    receiving[(i - 1) % 2]->finish(deadline);
    part.add(space.data() + (i - 1) % 2 * room, piece.offset / element, piece.bytes / element);
  }
  sending->finish(deadline);
  part.finish(mine, size);
}

void gather_parts(Mesh& mesh, const void* mine, void* all, std::span<const size_t> bytes, int root,
                  uint32_t tag, Deadline deadline) {
  const auto slot = [&](size_t size) { return message_slot(SlotKind::kGatherParts, tag, size); };
  if (mesh.rank() != root) {
    const size_t size = bytes[static_cast<size_t>(mesh.rank())];
    if (size == 0) return;
    const auto buffer = mesh.transport().make_buffer(mine, size, deadline);
    buffer->send(root, slot(size), 0, size);
    buffer->finish(deadline);
    return;
  }
  const size_t total = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
  const auto buffer = mesh.transport().make_buffer(all, total, deadline);
  size_t offset = 0;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const size_t size = bytes[static_cast<size_t>(rank)];
    if (rank != root && size > 0) buffer->recv(rank, slot(size), offset, size);
    offset += size;
  }
  buffer->finish(deadline);
}

void all_to_all(Mesh& mesh, const Operation& operation, Deadline deadline) {
  const int size = mesh.size();
  const int rank = mesh.rank();
  const size_t element = size_of(operation.in.type);
  const std::vector<size_t> in_counts =
      operation.counts.empty() ? even_parts(operation.in.count, size) : operation.counts;
  const std::vector<size_t> out_counts =
      operation.out_counts.empty() ? even_parts(operation.out.count, size) : operation.out_counts;
  const uint32_t tag = collective_tag(operation);
  const auto sending =
      mesh.transport().make_buffer(operation.in.data, operation.in.bytes(), deadline);
  const auto receiving =
      mesh.transport().make_buffer(operation.out.data, operation.out.bytes(), deadline);

  const auto bytes_of = [&](const std::vector<size_t>& counts, int peer) {
    return counts[static_cast<size_t>(peer)] * element;
  };
  for (int step = 1; step < size; ++step) {
    const int from = (rank + size - step) % size;
    if (const size_t bytes = bytes_of(out_counts, from); bytes > 0) {
      receiving->recv(from, message_slot(SlotKind::kAllToAll, tag, bytes),
                      offset_of(out_counts, from) * element, bytes);
    }
    const int to = (rank + step) % size;
    if (const size_t bytes = bytes_of(in_counts, to); bytes > 0) {
      sending->send(to, message_slot(SlotKind::kAllToAll, tag, bytes),
                    offset_of(in_counts, to) * element, bytes);
    }
  }
  if (const size_t bytes = bytes_of(in_counts, rank); bytes > 0) {
    std::memcpy(
        static_cast<std::byte*>(operation.out.data) + offset_of(out_counts, rank) * element,
        static_cast<const std::byte*>(operation.in.data) + offset_of(in_counts, rank) * element,
        std::min(bytes, bytes_of(out_counts, rank)));
  }
  receiving->finish(deadline);
  sending->finish(deadline);
}

}  // namespace muster::comm::detail
