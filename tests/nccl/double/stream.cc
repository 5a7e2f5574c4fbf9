// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <map>
#include <thread>

#include "device.h"
#include "faults.h"

namespace doubles {
namespace {

Device& device_at(int device) {
  return Runtime::get().devices[static_cast<size_t>(device)];
}

// With Runtime::mutex held.
std::shared_ptr<Stream> null_stream(int device) {
  Device& state = device_at(device);
  if (!state.null_stream) state.null_stream = Stream::start(device, cudaStreamDefault);
  return state.null_stream;
}

std::shared_ptr<Stream> per_thread_stream(int device) {
  thread_local std::map<int, std::shared_ptr<Stream>> streams;
  std::shared_ptr<Stream>& stream = streams[device];
  if (!stream) {
    stream = Stream::start(device, cudaStreamDefault);
    device_at(device).streams.insert(stream);
  }
  return stream;
}

std::shared_ptr<Stream> find_locked(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy) return null_stream(current_device());
  if (handle == cudaStreamPerThread) return per_thread_stream(current_device());
  for (Device& device : Runtime::get().devices) {
    for (const std::shared_ptr<Stream>& stream : device.streams) {
      if (reinterpret_cast<cudaStream_t>(stream.get()) == handle) return stream;
    }
  }
  return nullptr;
}

void add_last(Moments& moments, const std::shared_ptr<Stream>& stream) {
  if (stream && stream->last() && !stream->last()->done) moments.push_back(stream->last());
}

bool all_done(const Moments& moments) {
  return std::all_of(moments.begin(), moments.end(),
                     [](const auto& moment) { return moment->done; });
}

// What must have ended first because of the null stream's rule.
void add_implicit(const std::shared_ptr<Stream>& stream, Moments& after) {
  Device& device = device_at(stream->device());
  if (stream != device.null_stream) {
    if (stream->waits_for_null_stream()) add_last(after, device.null_stream);
    return;
  }
  for (const std::shared_ptr<Stream>& other : device.streams) {
    if (other->waits_for_null_stream()) add_last(after, other);
  }
}

}  // namespace

std::shared_ptr<Stream> Stream::start(int device, unsigned flags) {
  std::shared_ptr<Stream> stream(new Stream(device, flags));
  std::thread([stream] { stream->run(); }).detach();
  return stream;
}

std::shared_ptr<const Moment> Stream::put(Task task, Moments after) {
  auto moment = std::make_shared<Moment>();
  queue_.push_back({std::move(task), std::move(after), moment});
  last_ = moment;
  Runtime::get().changed.notify_all();
  return moment;
}

void Stream::close() {
  closed_ = true;
  Runtime::get().changed.notify_all();
}

void Stream::run() {
  Runtime& runtime = Runtime::get();
  while (true) {
    std::unique_lock lock(runtime.mutex);
    runtime.changed.wait(lock, [&] { return !queue_.empty() || closed_; });
    if (queue_.empty()) return;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run_entry(std::move(entry));
  }
}

void Stream::run_entry(Entry entry) {
  Runtime& runtime = Runtime::get();
  cudaError_t error = wait_for(device_, entry.after);
  if (error == cudaSuccess) error = static_cast<cudaError_t>(fault("task"));
  // A device that has failed runs nothing any more.
  if (error == cudaSuccess) {
    set_current_device(device_);
    error = entry.task();
  }
  if (error != cudaSuccess) poison(device_, error);
  entry.task = nullptr;  // what it holds goes before anybody hears that it has ended
  std::lock_guard lock(runtime.mutex);
  entry.moment->done = true;
  entry.moment->at = std::chrono::steady_clock::now();
  runtime.changed.notify_all();
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle) {
  std::lock_guard lock(Runtime::get().mutex);
  return find_locked(handle);
}

cudaStream_t add_stream(int device, unsigned flags) {
  std::lock_guard lock(Runtime::get().mutex);
  std::shared_ptr<Stream> stream = Stream::start(device, flags);
  device_at(device).streams.insert(stream);
  return reinterpret_cast<cudaStream_t>(stream.get());
}

bool remove_stream(cudaStream_t handle) {
  std::lock_guard lock(Runtime::get().mutex);
  if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread) return false;
  std::shared_ptr<Stream> stream = find_locked(handle);
  if (!stream) return false;
  stream->close();
  device_at(stream->device()).streams.erase(stream);
  return true;
}

std::shared_ptr<const Moment> enqueue(cudaStream_t handle, Stream::Task task, Moments after) {
  std::lock_guard lock(Runtime::get().mutex);
  std::shared_ptr<Stream> stream = find_locked(handle);
  if (!stream) return nullptr;
  add_implicit(stream, after);
  return stream->put(std::move(task), std::move(after));
}

cudaError_t wait_for(int device, const Moments& moments) {
  Runtime& runtime = Runtime::get();
  std::unique_lock lock(runtime.mutex);
  Device& state = device_at(device);
  runtime.changed.wait(lock, [&] { return state.sticky != cudaSuccess || all_done(moments); });
  return state.sticky;
}

cudaError_t query(int device, const Moments& moments) {
  std::lock_guard lock(Runtime::get().mutex);
  if (cudaError_t sticky = device_at(device).sticky; sticky != cudaSuccess) return sticky;
  return all_done(moments) ? cudaSuccess : cudaErrorNotReady;
}

Moments all_work(int device) {
  std::lock_guard lock(Runtime::get().mutex);
  Moments moments;
  Device& state = device_at(device);
  add_last(moments, state.null_stream);
  for (const std::shared_ptr<Stream>& stream : state.streams)
    add_last(moments, stream);
  return moments;
}

}  // namespace doubles
