// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions about streams and events. All signatures are cuda_runtime_api.h's.
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "device.h"
#include "stream.h"

using namespace doubles;

namespace {

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<const Moment> recorded;  // null: never
};

std::mutex& events_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

// Never freed: threads that outlive main() still ask.
std::map<cudaEvent_t, std::shared_ptr<Event>>& events() {
  static auto* all = new std::map<cudaEvent_t, std::shared_ptr<Event>>;
  return *all;
}

std::shared_ptr<Event> find_event(cudaEvent_t handle) {
  std::lock_guard lock(events_mutex());
  auto found = events().find(handle);
  return found == events().end() ? nullptr : found->second;
}

std::shared_ptr<const Moment> recorded_in(const Event& event) {
  std::lock_guard lock(events_mutex());
  return event.recorded;
}

cudaError_t create_event(cudaEvent_t* handle, unsigned flags) {
  auto event = std::make_shared<Event>();
  event->device = current_device();
  event->flags = flags;
  std::lock_guard lock(events_mutex());
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  events()[*handle] = event;
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t handle, cudaStream_t stream) {
  std::shared_ptr<Event> event = find_event(handle);
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!event || !target || target->device() != event->device) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  std::shared_ptr<const Moment> moment = enqueue(stream, [] { return cudaSuccess; });
  std::lock_guard lock(events_mutex());
  event->recorded = std::move(moment);
  return cudaSuccess;
}

Moments moments_of(const Event& event) {
  std::shared_ptr<const Moment> moment = recorded_in(event);
  return moment ? Moments{moment} : Moments{};
}

cudaError_t create_stream(cudaStream_t* stream, unsigned flags) {
  if (!stream) return answer(cudaErrorInvalidValue);
  *stream = add_stream(current_device(), flags);
  return cudaSuccess;
}

Moments work_of(const Stream& stream) {
  std::lock_guard lock(Runtime::get().mutex);
  return stream.last() ? Moments{stream.last()} : Moments{};
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  if (cudaError_t error = enter("cudaStreamCreate")) return error;
  return create_stream(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (cudaError_t error = enter("cudaStreamCreateWithFlags")) return error;
  return create_stream(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  if (cudaError_t error = enter("cudaStreamCreateWithPriority")) return error;
  return create_stream(stream, flags);
}

// Returns at once; what is still on the stream is done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (cudaError_t error = enter("cudaStreamDestroy")) return error;
  return remove_stream(stream) ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (cudaError_t error = enter("cudaStreamSynchronize")) return error;
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!target) return answer(cudaErrorInvalidResourceHandle);
  return answer(wait_for(target->device(), work_of(*target)));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (cudaError_t error = enter("cudaStreamQuery")) return error;
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!target) return answer(cudaErrorInvalidResourceHandle);
  return answer(query(target->device(), work_of(*target)));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  if (cudaError_t error = enter("cudaStreamGetFlags")) return error;
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!target) return answer(cudaErrorInvalidResourceHandle);
  *flags = target->flags();
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  if (cudaError_t error = enter("cudaStreamGetDevice")) return error;
  std::shared_ptr<Stream> target = find_stream(stream);
  if (!target) return answer(cudaErrorInvalidResourceHandle);
  *device = target->device();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (cudaError_t error = enter("cudaStreamIsCapturing")) return error;
  if (!find_stream(stream)) return answer(cudaErrorInvalidResourceHandle);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  if (cudaError_t error = enter("cudaStreamWaitEvent")) return error;
  std::shared_ptr<Event> event = find_event(handle);
  if (!event) return answer(cudaErrorInvalidResourceHandle);
  // An event that was never recorded is over.
  bool put = enqueue(
                 stream, [] { return cudaSuccess; }, moments_of(*event)) != nullptr;
  return put ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (cudaError_t error = enter("cudaLaunchHostFunc")) return error;
  if (!function) return answer(cudaErrorInvalidValue);
  bool put = enqueue(stream, [function, data] {
               set_in_host_function(true);
               function(data);
               set_in_host_function(false);
               return cudaSuccess;
             }) != nullptr;
  return put ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (cudaError_t error = enter("cudaEventCreate")) return error;
  return create_event(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (cudaError_t error = enter("cudaEventCreateWithFlags")) return error;
  return create_event(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (cudaError_t error = enter("cudaEventDestroy")) return error;
  std::lock_guard lock(events_mutex());
  return events().erase(event) == 1 ? cudaSuccess : answer(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (cudaError_t error = enter("cudaEventRecord")) return error;
  return record(event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  if (cudaError_t error = enter("cudaEventRecordWithFlags")) return error;
  return record(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (cudaError_t error = enter("cudaEventQuery")) return error;
  std::shared_ptr<Event> event = find_event(handle);
  if (!event) return answer(cudaErrorInvalidResourceHandle);
  return answer(query(event->device, moments_of(*event)));
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (cudaError_t error = enter("cudaEventSynchronize")) return error;
  std::shared_ptr<Event> event = find_event(handle);
  if (!event) return answer(cudaErrorInvalidResourceHandle);
  return answer(wait_for(event->device, moments_of(*event)));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t first, cudaEvent_t last) {
  if (cudaError_t error = enter("cudaEventElapsedTime")) return error;
  std::shared_ptr<Event> begin = find_event(first);
  std::shared_ptr<Event> end = find_event(last);
  if (!begin || !end || ((begin->flags | end->flags) & cudaEventDisableTiming)) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  std::shared_ptr<const Moment> from = recorded_in(*begin);
  std::shared_ptr<const Moment> to = recorded_in(*end);
  if (!from || !to) return answer(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(Runtime::get().mutex);
  if (!from->done || !to->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}

}  // extern "C"
