// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace doubles {

// When one thing on a stream has ended. Guarded by Runtime::mutex.
struct Moment {
  bool done = false;
  std::chrono::steady_clock::time_point at{};
};
using Moments = std::vector<std::shared_ptr<const Moment>>;

// A queue of functions and the thread that does one after the other. The thread is detached: what
// it runs may never end (a kernel that hangs), and the process may then still exit.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // What it gives is the device's error from then on.
  using Task = std::function<cudaError_t()>;

  static std::shared_ptr<Stream> start(int device, unsigned flags);

  int device() const { return device_; }
  unsigned flags() const { return flags_; }
  bool waits_for_null_stream() const { return (flags_ & cudaStreamNonBlocking) == 0; }

  // The rest with Runtime::mutex held. The task runs when what was put here before and `after`
  // have ended.
  std::shared_ptr<const Moment> put(Task task, Moments after);
  std::shared_ptr<const Moment> last() const { return last_; }
  // The thread ends when all is done.
  void close();

 private:
  struct Entry {
    Task task;
    Moments after;
    std::shared_ptr<Moment> moment;
  };
  Stream(int device, unsigned flags) : device_(device), flags_(flags) {}
  void run();
  void run_entry(Entry entry);

  const int device_;
  const unsigned flags_;
  std::deque<Entry> queue_;
  std::shared_ptr<const Moment> last_;
  bool closed_ = false;
};

// The stream behind a handle (null, cudaStreamLegacy and cudaStreamPerThread included), or nullptr.
std::shared_ptr<Stream> find_stream(cudaStream_t handle);
cudaStream_t add_stream(int device, unsigned flags);
bool remove_stream(cudaStream_t handle);

// Puts `task` on a stream as CUDA orders them: the null stream waits for the blocking streams of
// its device, and they for it. nullptr: there is no such stream.
std::shared_ptr<const Moment> enqueue(cudaStream_t stream, Stream::Task task, Moments after = {});

// Waits for the end of all of them, or for the device's error, which it gives.
cudaError_t wait_for(int device, const Moments& moments);
// cudaErrorNotReady: not all of them have ended.
cudaError_t query(int device, const Moments& moments);
// The last of each stream of the device.
Moments all_work(int device);

}  // namespace doubles
