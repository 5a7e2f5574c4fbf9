// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>
#include <muster/train/buckets.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::train {

struct DdpOptions {
  BucketOptions buckets{};
  // Parameters may have no gradient in a step, on some ranks or on all. Costs one small all_reduce
  // a step; without it such a step is an error.
  bool find_unused_parameters = false;
  bool broadcast_parameters = true;         // begin with rank 0's values everywhere
  std::optional<comm::Duration> timeout{};  // of each operation; nullopt: the communicator's

  // For device memory: gives the memory of one bucket, `count` elements, with the stream on which
  // its all_reduce takes its turn. It must live until the last operation is done.
  std::function<comm::Buffer(size_t bucket, size_t count, comm::DataType type)> allocate{};
  // Where that stream is not the one that computes: called before a bucket's all_reduce is put on
  // its stream (make it wait for the gradients) and after the last one of a step (make the
  // computing stream wait for it).
  std::function<void(size_t bucket)> before_all_reduce{};
  std::function<void()> after_all_reduce{};
  // For device memory: a communicator of the same ranks for host memory, by which the ranks compare
  // their parameters and tell each other which were used. Without it parameters are not compared,
  // and find_unused_parameters is refused.
  comm::Communicator* control = nullptr;
};

// Averages gradients over the ranks while the backward pass is still making others: PyTorch's
// DistributedDataParallel for a program that computes its gradients itself. Gradients lie in the
// buckets that travel, so nothing is copied.
//
//   auto ddp = DistributedDataParallel::make(all, parameters).value();
//   for (...) {
//     ddp.zero_gradients();
//     ...backward: for each parameter, last layer first: add to ddp.gradient<float>(i);
//     ddp.ready(i);
//     ddp.finish().value();  // ddp.gradient<float>(i) is now the average over all ranks
//     ...update the parameters
//   }
//
// All ranks make one with the same parameters and have the same steps. Buckets are reduced in the
// order of plan_buckets() on every rank, whatever order the gradients come in. One thread at a
// time; the communicator must live longer, and nothing else may be begun on it between the first
// ready() and finish(). Dropped while gradients are under way (an exception, say), it aborts the
// communicator, because their memory goes.
class DistributedDataParallel {
 public:
  // Errors: kInvalidArgument (a name twice, whole numbers, device memory without `allocate`),
  // kMismatch (the ranks' parameters are not the same; the first difference is named), and those of
  // the communicator.
  static comm::Result<DistributedDataParallel> make(comm::Communicator& communicator,
                                                    std::vector<NamedTensor> parameters,
                                                    DdpOptions options = {});
  DistributedDataParallel(DistributedDataParallel&&) noexcept;
  DistributedDataParallel& operator=(DistributedDataParallel&&) noexcept;
  ~DistributedDataParallel();

  // What it was made of.
  const std::vector<NamedTensor>& parameters() const;
  const std::vector<Bucket>& buckets() const;
  comm::Buffer storage(size_t bucket) const;  // empty for one that is not there, as gradient()

  // Where the gradient of a parameter is to be added up; it has the parameter's shape and type.
  comm::Buffer gradient(size_t parameter) const;
  template <comm::Element T>
  std::span<T> gradient(size_t parameter) const {
    const comm::Buffer buffer = gradient(parameter);
    return {static_cast<T*>(buffer.data), buffer.type == comm::data_type_of<T> ? buffer.count : 0};
  }
  // Host memory. On a device the program clears storage() on its own stream.
  void zero_gradients();

  // This rank's gradient of the parameter is complete. Never waits; an error is kept for finish().
  void ready(size_t parameter);

  // Ends the step. Host memory: waits until all gradients are averaged. Device memory: all is on
  // the stream; it waits for the step before, so that the host is at most one step ahead.
  //
  // Errors: kInvalidArgument names the parameters that were not ready, or those that were twice;
  // kTimeout, kPeerLost and the others come from the communicator. After one, all calls say the
  // same: the gradients are of no use.
  comm::Result<void> finish();
  // Device memory: waits until the device has done what finish() left under way.
  comm::Result<void> wait();

  // With find_unused_parameters: those that no rank used in the step that ended last. Their
  // gradients are what they were before, zero after zero_gradients(); an optimiser with momentum or
  // weight decay should leave these parameters alone.
  const std::vector<std::string>& unused_parameters() const;

  // While it lives, steps only add up here: finish() averages nothing and checks nothing. The next
  // step without it averages the sum.
  class [[nodiscard]] NoSync {
   public:
    NoSync(NoSync&& other) noexcept;
    NoSync& operator=(NoSync&&) = delete;
    ~NoSync();

   private:
    friend class DistributedDataParallel;
    explicit NoSync(int* depth);
    int* depth_;
  };
  NoSync no_sync();

 private:
  class Impl;
  explicit DistributedDataParallel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::train
