// SPDX-License-Identifier: Apache-2.0
#include <muster/train/ddp.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "nccl/train/agree.h"
#include "nccl/train/tensor_format.h"

namespace muster::train {

using comm::Buffer;
using comm::Communicator;
using comm::Error;
using comm::ErrorCode;
using comm::Memory;
using comm::Result;
using comm::Work;

namespace {

constexpr size_t kNamesShown = 10;

Error wrong(const std::string& why) {
  return {ErrorCode::kInvalidArgument, "ddp: " + why};
}

bool is_floating(comm::DataType type) {
  return type == comm::DataType::kFloat16 || type == comm::DataType::kBfloat16 ||
         type == comm::DataType::kFloat32 || type == comm::DataType::kFloat64;
}

Result<void> check(const std::vector<NamedTensor>& parameters, const DdpOptions& options) {
  std::set<std::string_view> names;
  if (parameters.empty()) return wrong("there are no parameters");
  const Memory memory = parameters.front().data.memory;
  for (const NamedTensor& parameter : parameters) {
    const std::string name = "parameter '" + parameter.name + "' ";
    if (!names.insert(parameter.name).second) return wrong(name + "is there twice");
    if (!is_floating(parameter.data.type)) {
      return wrong(name + "is of type " + to_string(parameter.data.type) +
                   "; only floating-point numbers have gradients");
    }
    if (parameter.data.memory != memory) return wrong(name + "is in other memory than the first");
  }
  if (memory == Memory::kHost) return {};
  if (!options.allocate) return wrong("gradients of device memory need DdpOptions::allocate");
  if (options.find_unused_parameters && options.control == nullptr) {
    return wrong("find_unused_parameters with device memory needs DdpOptions::control");
  }
  return {};
}

std::vector<std::string> describe_all(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> lines;
  lines.reserve(parameters.size());
  for (const NamedTensor& parameter : parameters) {
    lines.push_back("'" + parameter.name + "' " +
                    detail::describe(to_string(parameter.data.type), parameter.shape));
  }
  return lines;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The ranks' parameters one by one against rank 0's.
Result<void> compare(Communicator& control, const std::vector<NamedTensor>& parameters) {
  const std::vector<std::string> mine = describe_all(parameters);
  std::string text;
  for (const std::string& line : mine)
    text += line + "\n";
  const Result<std::string> shared = detail::share(control, text);
  if (!shared) return shared.error();
  const std::vector<std::string> theirs = split_lines(*shared);
  Result<void> same;
  for (size_t i = 0; same && i < std::max(mine.size(), theirs.size()); ++i) {
    const std::string here = i < mine.size() ? mine[i] : "missing";
    const std::string there = i < theirs.size() ? theirs[i] : "missing";
    if (here == there) continue;
    same = Error{ErrorCode::kMismatch,
                 "ddp: parameter " + std::to_string(i) + " is " + here + ", rank 0's is " + there};
  }
  return detail::agree(control, same);
}

std::string shorten(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamesShown) {
    text += " and " + std::to_string(names.size() - kNamesShown) + " more";
  }
  return text;
}

}  // namespace

class DistributedDataParallel::Impl {
 public:
  Impl(Communicator& comm, std::vector<NamedTensor> params, DdpOptions opts)
      : communicator(comm), parameters(std::move(params)), options(std::move(opts)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  Result<void> start();
  void ready(size_t parameter);
  Result<void> finish();
  Result<void> wait();
  void zero();
  bool on_host() const { return parameters.front().data.memory == Memory::kHost; }

  Communicator& communicator;  // the program's, which lives longer
  std::vector<NamedTensor> parameters;
  DdpOptions options;
  std::vector<Bucket> buckets;
  std::vector<Buffer> storage;    // by bucket
  std::vector<Buffer> gradients;  // by parameter, views of storage
  std::vector<std::string> unused;
  int no_sync_depth = 0;

 private:
  void allocate();
  void fail(Error why);
  void launch_complete();
  Result<void> require_all();
  Result<void> find_unused();
  void begin_step();
  Result<void> wait_for(std::vector<Work>& works);
  comm::OpOptions operation() const { return {options.timeout, true}; }

  std::vector<std::unique_ptr<std::byte[]>> memory_;  // ours, where the program gave none
  std::vector<size_t> bucket_of_;                     // by parameter
  std::vector<bool> is_ready_;                        // by parameter, in this step
  std::vector<int32_t> used_;                         // by parameter, since the last average
  std::vector<size_t> missing_;                       // by bucket: gradients that are not ready
  size_t launched_ = 0;                               // buckets
  std::vector<Work> works_;                           // of this step
  std::vector<Work> before_;                          // device memory: of the step before
  std::optional<Error> error_;
};

DistributedDataParallel::Impl::~Impl() {
  if (memory_.empty()) return;
  const bool done = std::all_of(works_.begin(), works_.end(), [](Work& w) { return w.test(); });
  if (done) return;
  if (!communicator.abort("its DistributedDataParallel was dropped with gradients under way")) {
    // The library did not let go in time and may still write there.
    for (auto& memory : memory_)
      static_cast<void>(memory.release());
  }
}

void DistributedDataParallel::Impl::allocate() {
  bucket_of_.resize(parameters.size());
  gradients.resize(parameters.size());
  for (size_t b = 0; b < buckets.size(); ++b) {
    const Bucket& bucket = buckets[b];
    if (options.allocate) {
      storage.push_back(options.allocate(b, bucket.count, bucket.type));
    } else {
      memory_.push_back(std::make_unique<std::byte[]>(bucket.count * size_of(bucket.type)));
      storage.emplace_back(memory_.back().get(), bucket.count, bucket.type);
    }
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const size_t parameter = bucket.parameters[i];
      bucket_of_[parameter] = b;
      gradients[parameter] = storage[b].part(bucket.offsets[i], parameters[parameter].data.count);
    }
  }
}

Result<void> DistributedDataParallel::Impl::start() {
  Communicator* control = on_host() ? &communicator : options.control;
  Result<void> good = check(parameters, options);
  if (control != nullptr) good = detail::agree(*control, good);
  if (good && control != nullptr) good = compare(*control, parameters);
  if (!good) return good;
  buckets = plan_buckets(parameters, options.buckets);
  allocate();
  for (size_t b = 0; b < buckets.size(); ++b) {
    const Buffer& given = storage[b];
    if (given.count != buckets[b].count || given.type != buckets[b].type || given.data == nullptr ||
        (given.memory == Memory::kHost) != on_host()) {
      return wrong("DdpOptions::allocate gave other memory than bucket " + std::to_string(b) +
                   " asked for: " + std::to_string(buckets[b].count) + " elements of " +
                   to_string(buckets[b].type));
    }
  }
  used_.assign(parameters.size(), 0);
  begin_step();
  for (const NamedTensor& parameter : parameters) {
    if (!options.broadcast_parameters) break;
    good = communicator.broadcast(parameter.data, 0, {options.timeout, false}).wait();
    if (!good) return good;
  }
  return {};
}

void DistributedDataParallel::Impl::begin_step() {
  is_ready_.assign(parameters.size(), false);
  missing_.clear();
  for (const Bucket& bucket : buckets)
    missing_.push_back(bucket.parameters.size());
  launched_ = 0;
  works_.clear();
}

void DistributedDataParallel::Impl::fail(Error why) {
  if (!error_) error_ = std::move(why);
}

void DistributedDataParallel::Impl::zero() {
  for (const Buffer& bucket : storage) {
    if (bucket.memory == Memory::kHost && bucket.data) {
      std::memset(bucket.data, 0, bucket.bytes());
    }
  }
}

void DistributedDataParallel::Impl::ready(size_t parameter) {
  if (parameter >= parameters.size()) {
    return fail(wrong("there is no parameter " + std::to_string(parameter)));
  }
  if (is_ready_[parameter]) {
    return fail(wrong("parameter '" + parameters[parameter].name +
                      "' was ready twice in one step; a gradient must be complete when it is"));
  }
  is_ready_[parameter] = true;
  used_[parameter] = 1;
  --missing_[bucket_of_[parameter]];
  if (no_sync_depth == 0 && !error_) launch_complete();
}

// In the order of the buckets, which is the same on all ranks: one that is complete waits for those
// before it.
void DistributedDataParallel::Impl::launch_complete() {
  for (; launched_ < buckets.size() && missing_[launched_] == 0; ++launched_) {
    if (options.before_all_reduce) options.before_all_reduce(launched_);
    works_.push_back(
        communicator.all_reduce(storage[launched_], comm::ReduceOp::kAverage, operation()));
  }
}

Result<void> DistributedDataParallel::Impl::require_all() {
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_ready_[i]) names.push_back(parameters[i].name);
  }
  if (names.empty()) return {};
  return wrong("no gradient in this step for " + shorten(names) + " (" +
               std::to_string(names.size()) + " of " + std::to_string(parameters.size()) +
               " parameters); set find_unused_parameters if that is meant");
}

// Begins what is left, whatever it holds, and asks who used what.
Result<void> DistributedDataParallel::Impl::find_unused() {
  std::fill(missing_.begin(), missing_.end(), 0);
  launch_complete();
  std::vector<int32_t> ranks = used_;
  Communicator& control = on_host() ? communicator : *options.control;
  Result<void> done =
      control.all_reduce(ranks, comm::ReduceOp::kSum, {options.timeout, false}).wait();
  unused.clear();
  for (size_t i = 0; done && i < ranks.size(); ++i) {
    if (ranks[i] == 0) unused.push_back(parameters[i].name);
  }
  return done;
}

Result<void> DistributedDataParallel::Impl::wait_for(std::vector<Work>& works) {
  for (Work& work : works) {
    if (Result<void> done = work.wait(); !done) {
      fail(done.error());
      return done;
    }
  }
  works.clear();
  return {};
}

Result<void> DistributedDataParallel::Impl::finish() {
  if (error_) return *error_;
  if (no_sync_depth > 0) {
    begin_step();
    return {};
  }
  Result<void> good = options.find_unused_parameters ? find_unused() : require_all();
  if (!good) {
    fail(good.error());
    return good;
  }
  if (options.after_all_reduce) options.after_all_reduce();
  if (on_host()) {
    good = wait_for(works_);
  } else {
    good = wait_for(before_);
    before_ = std::exchange(works_, {});
  }
  if (!good) return good;
  used_.assign(parameters.size(), 0);
  begin_step();
  return {};
}

Result<void> DistributedDataParallel::Impl::wait() {
  if (error_) return *error_;
  return wait_for(before_);
}

Result<DistributedDataParallel> DistributedDataParallel::make(Communicator& communicator,
                                                              std::vector<NamedTensor> parameters,
                                                              DdpOptions options) {
  if (parameters.empty()) return wrong("there are no parameters");
  auto impl = std::make_unique<Impl>(communicator, std::move(parameters), std::move(options));
  if (Result<void> started = impl->start(); !started) return started.error();
  return DistributedDataParallel(std::move(impl));
}

DistributedDataParallel::DistributedDataParallel(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
DistributedDataParallel::DistributedDataParallel(DistributedDataParallel&&) noexcept = default;
DistributedDataParallel& DistributedDataParallel::operator=(DistributedDataParallel&&) noexcept =
    default;
DistributedDataParallel::~DistributedDataParallel() = default;

const std::vector<NamedTensor>& DistributedDataParallel::parameters() const {
  return impl_->parameters;
}
const std::vector<Bucket>& DistributedDataParallel::buckets() const {
  return impl_->buckets;
}
Buffer DistributedDataParallel::storage(size_t bucket) const {
  return bucket < impl_->storage.size() ? impl_->storage[bucket] : Buffer();
}
Buffer DistributedDataParallel::gradient(size_t parameter) const {
  return parameter < impl_->gradients.size() ? impl_->gradients[parameter] : Buffer();
}
void DistributedDataParallel::zero_gradients() {
  impl_->zero();
}
void DistributedDataParallel::ready(size_t parameter) {
  impl_->ready(parameter);
}
Result<void> DistributedDataParallel::finish() {
  return impl_->finish();
}
const std::vector<std::string>& DistributedDataParallel::unused_parameters() const {
  return impl_->unused;
}

Result<void> DistributedDataParallel::wait() {
  return impl_->wait();
}

DistributedDataParallel::NoSync::NoSync(int* depth) : depth_(depth) {
  ++*depth_;
}
DistributedDataParallel::NoSync::NoSync(NoSync&& other) noexcept
    : depth_(std::exchange(other.depth_, nullptr)) {}
DistributedDataParallel::NoSync::~NoSync() {
  if (depth_ != nullptr) --*depth_;
}
DistributedDataParallel::NoSync DistributedDataParallel::no_sync() {
  return NoSync(&impl_->no_sync_depth);
}

}  // namespace muster::train
