// SPDX-License-Identifier: Apache-2.0
#include "nccl/sweep/sweep.h"

#include <array>
#include <cstdio>
#include <numeric>

#include "nccl/memory.h"
#include "nccl/sweep/values.h"

namespace muster::comm::test {
namespace {

constexpr std::array kReductions{ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                                 ReduceOp::kAverage};
constexpr int kMaxSaid = 20;

template <typename T>
class Sweep {
 public:
  Sweep(Communicator& group, const std::string& shape, SweepTally& tally)
      : group_(group), shape_(shape), tally_(tally), rank_(group.rank()), size_(group.size()) {}

  void run(size_t count) {
    begin(count);
    everything();
  }
  void run_in_background(size_t count) {
    begin(count);
    options_.async = true;
    everything();
    many_at_once();
  }

  // The same paths, once: the reference takes longer than the operations.
  void run_large(size_t count) {
    begin(count);
    reductions(ReduceOp::kSum);
    one_to_all();
    all_to_one();
    all_to_all();
    messages();
  }

 private:
  using Values = std::vector<T>;

  TestBuffer upload(const Values& values) {
    TestBuffer buffer(group_.backend(), values.size(), data_type_of<T>);
    buffer.upload(std::as_bytes(std::span(values)));
    return buffer;
  }
  // Something that no operation leaves.
  TestBuffer untouched(size_t count) { return upload(Values(count, element<T>(99))); }
  void begin(size_t count) {
    count_ = count;
    root_ = rounds_++ % size_;
    options_ = {};
  }
  void everything() {
    for (const ReduceOp op : kReductions)
      reductions(op);
    one_to_all();
    all_to_one();
    all_to_all();
    messages();
  }
  size_t n() const { return static_cast<size_t>(size_); }
  size_t own() const { return static_cast<size_t>(rank_); }

  void end(Work work, const char* name) {
    ++tally_.operations;
    const Result<void> result = work.wait();
    if (!result) complain(name, 0, result.error().message);
  }

  void complain(const char* name, size_t index, const std::string& text) {
    if (++tally_.wrong > kMaxSaid) return;
    std::fprintf(stderr, "%s, rank %d of %d: %s of %zu %s%s: [%zu] %s\n", shape_.c_str(), rank_,
                 size_, name, count_, to_string(data_type_of<T>), options_.async ? ", async" : "",
                 index, text.c_str());
  }

  void equal(const TestBuffer& got, const Values& wanted, const char* name) {
    const Values values = got.template values<T>();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (number(values[i]) == number(wanted[i])) continue;
      return complain(
          name, i,
          std::to_string(number(values[i])) + " instead of " + std::to_string(number(wanted[i])));
    }
  }

  // `first`: which of the elements that were put in the result begins with.
  void check_reduced(const TestBuffer& got, ReduceOp op, size_t first, size_t count,
                     const char* name) {
    const bool once = group_.backend() == Backend::kGloo && size_of(data_type_of<T>) == 2;
    const Values values = got.template values<T>();
    for (size_t i = 0; i < count; ++i) {
      const Expected wanted = reduced<T>(op, size_, first + i, once ? 1 : size_);
      if (std::fabs(number(values[i]) - wanted.value) <= wanted.bound) continue;
      return complain(name, i,
                      std::string(to_string(op)) + ": " + std::to_string(number(values[i])) +
                          " instead of " + std::to_string(wanted.value));
    }
  }

  std::vector<size_t> uneven() const {
    std::vector<size_t> counts(n());
    for (size_t i = 0; i < n(); ++i)
      counts[i] = i == 1 ? 0 : count_ + i;
    return counts;
  }
  static size_t total(const std::vector<size_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), size_t{0});
  }
  size_t before(const std::vector<size_t>& counts) const {
    return std::accumulate(counts.begin(), counts.begin() + rank_, size_t{0});
  }

  void reductions(ReduceOp op) {
    const Values mine = values<T>(rank_, count_, op);
    TestBuffer in = upload(mine);
    TestBuffer out = untouched(count_);
    end(group_.all_reduce(in, out, op, options_), "all_reduce");
    check_reduced(out, op, 0, count_, "all_reduce");
    equal(in, mine, "what all_reduce reads");

    TestBuffer same = upload(mine);
    end(group_.all_reduce(same, op, options_), "all_reduce in place");
    check_reduced(same, op, 0, count_, "all_reduce in place");

    TestBuffer reduced = untouched(count_);
    end(group_.reduce(in, reduced, op, root_, options_), "reduce");
    if (rank_ == root_) check_reduced(reduced, op, 0, count_, "reduce");
    if (rank_ != root_) equal(reduced, Values(count_, element<T>(99)), "reduce elsewhere");
    equal(in, mine, "what reduce reads");

    TestBuffer root_same = upload(mine);
    end(group_.reduce(root_same, root_same, op, root_, options_), "reduce in place");
    if (rank_ == root_) check_reduced(root_same, op, 0, count_, "reduce in place");

    const Values parts = values<T>(rank_, count_ * n(), op);
    TestBuffer all = upload(parts);
    TestBuffer part = untouched(count_);
    end(group_.reduce_scatter(all, part, op, options_), "reduce_scatter");
    check_reduced(part, op, own() * count_, count_, "reduce_scatter");
    equal(all, parts, "what reduce_scatter reads");

    const std::vector<size_t> counts = uneven();
    TestBuffer some = upload(values<T>(rank_, total(counts), op));
    TestBuffer piece = untouched(counts[own()]);
    end(group_.reduce_scatter(some, piece, counts, op, options_), "reduce_scatter of counts");
    check_reduced(piece, op, before(counts), counts[own()], "reduce_scatter of counts");
  }

  void one_to_all() {
    TestBuffer sent = upload(values<T>(rank_, count_));
    end(group_.broadcast(sent, root_, options_), "broadcast");
    equal(sent, values<T>(root_, count_), "broadcast");

    TestBuffer all = upload(values<T>(rank_, count_ * n()));
    TestBuffer part = untouched(count_);
    end(group_.scatter(rank_ == root_ ? ConstBuffer(all) : ConstBuffer(), part, root_, options_),
        "scatter");
    const Values whole = values<T>(root_, count_ * n());
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(own() * count_);
    equal(part, Values(first, first + static_cast<std::ptrdiff_t>(count_)), "scatter");
  }

  void all_to_one() {
    Values joined;
    for (int rank = 0; rank < size_; ++rank) {
      const Values part = values<T>(rank, count_);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    TestBuffer part = upload(values<T>(rank_, count_));
    TestBuffer all = untouched(count_ * n());
    end(group_.gather(part, rank_ == root_ ? Buffer(all) : Buffer(), root_, options_), "gather");
    equal(all, rank_ == root_ ? joined : Values(joined.size(), element<T>(99)), "gather");

    TestBuffer everywhere = untouched(count_ * n());
    end(group_.all_gather(part, everywhere, options_), "all_gather");
    equal(everywhere, joined, "all_gather");

    const std::vector<size_t> counts = uneven();
    Values uneven_joined;
    for (int rank = 0; rank < size_; ++rank) {
      const Values piece = values<T>(rank, counts[static_cast<size_t>(rank)]);
      uneven_joined.insert(uneven_joined.end(), piece.begin(), piece.end());
    }
    TestBuffer piece = upload(values<T>(rank_, counts[own()]));
    TestBuffer some = untouched(total(counts));
    end(group_.all_gather(piece, some, counts, options_), "all_gather of counts");
    equal(some, uneven_joined, "all_gather of counts");
  }

  void all_to_all() {
    TestBuffer in = upload(values<T>(rank_, count_ * n()));
    TestBuffer out = untouched(count_ * n());
    end(group_.all_to_all(in, out, options_), "all_to_all");
    Values wanted;
    for (int rank = 0; rank < size_; ++rank) {
      for (size_t i = 0; i < count_; ++i) {
        wanted.push_back(value<T>(rank, own() * count_ + i, ReduceOp::kSum));
      }
    }
    equal(out, wanted, "all_to_all");

    // Rank a sends count + a elements to each even rank b, and none to the odd ones.
    const auto sends = [&](size_t from, size_t to) { return to % 2 == 0 ? count_ + from : 0; };
    std::vector<size_t> in_counts, out_counts;
    Values received;
    for (size_t rank = 0; rank < n(); ++rank) {
      in_counts.push_back(sends(own(), rank));
      out_counts.push_back(sends(rank, own()));
      const size_t first = sends(rank, 0) * ((own() + 1) / 2);
      for (size_t i = 0; i < out_counts.back(); ++i) {
        received.push_back(value<T>(static_cast<int>(rank), first + i, ReduceOp::kSum));
      }
    }
    TestBuffer from = upload(values<T>(rank_, total(in_counts)));
    TestBuffer to = untouched(total(out_counts));
    end(group_.all_to_all(from, in_counts, to, out_counts, options_), "all_to_all of counts");
    equal(to, received, "all_to_all of counts");
  }

  // Round a ring, one after the other and in a batch.
  void messages() {
    if (size_ == 1) return;
    const int next = (rank_ + 1) % size_;
    const int last = (rank_ + size_ - 1) % size_;
    const Values wanted = values<T>(last, count_);
    TestBuffer mine = upload(values<T>(rank_, count_));
    TestBuffer batched = untouched(count_);
    const std::array both{P2p::send(mine, next), P2p::recv(batched, last)};
    end(group_.batch(both, options_), "batch");
    equal(batched, wanted, "batch");

    TestBuffer taken = untouched(count_);
    if (rank_ % 2 == 0) {
      end(group_.send(mine, next, 0, options_), "send");
      end(group_.recv(taken, last, 0, options_), "recv");
    } else {
      end(group_.recv(taken, last, 0, options_), "recv");
      end(group_.send(mine, next, 0, options_), "send");
    }
    equal(taken, wanted, "recv");
  }

  void many_at_once() {
    options_.async = true;
    std::vector<TestBuffer> buffers;
    std::vector<Work> works;
    for (const ReduceOp op : kReductions) {
      buffers.push_back(upload(values<T>(rank_, count_, op)));
      works.push_back(group_.all_reduce(buffers.back(), op, options_));
    }
    for (size_t i = 0; i < works.size(); ++i) {
      end(std::move(works[i]), "one of many");
      check_reduced(buffers[i], kReductions[i], 0, count_, "one of many");
    }
  }

  Communicator& group_;
  const std::string& shape_;
  SweepTally& tally_;
  const int rank_;
  const int size_;
  size_t count_ = 0;
  int rounds_ = 0;
  int root_ = 0;
  OpOptions options_;
};

template <typename T>
void sweep_type(Communicator& group, const SweepOptions& options, SweepTally& tally) {
  Sweep<T> sweep(group, options.shape, tally);
  for (const size_t count : {0, 1, 17, 4099}) {
    sweep.run(count);
    if (options.background) sweep.run_in_background(count);
  }
  // More than a piece of 1 MiB for each rank.
  constexpr bool kLargeToo = std::is_same_v<T, float> || std::is_same_v<T, Bfloat16>;
  if (options.large && kLargeToo) sweep.run_large(600'011);
}

}  // namespace

void sweep(Communicator& group, const SweepOptions& options, SweepTally& tally) {
  sweep_type<int8_t>(group, options, tally);
  sweep_type<uint8_t>(group, options, tally);
  sweep_type<int32_t>(group, options, tally);
  sweep_type<uint32_t>(group, options, tally);
  sweep_type<int64_t>(group, options, tally);
  sweep_type<uint64_t>(group, options, tally);
  sweep_type<Float16>(group, options, tally);
  sweep_type<float>(group, options, tally);
  sweep_type<double>(group, options, tally);
  sweep_type<Bfloat16>(group, options, tally);
}

}  // namespace muster::comm::test
