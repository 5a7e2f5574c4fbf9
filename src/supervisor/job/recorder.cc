// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/recorder.h"

#include <utility>

namespace muster {

int64_t Recorder::now_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count();
}

void Recorder::record(EventBody body) {
  Event event;
  event.seq = next_seq_++;
  event.time = std::chrono::system_clock::now();
  event.mono_us = now_us();
  event.body = std::move(body);
  apply(state_, event);
  for (const Observer& observer : observers_)
    observer(state_, event);
}

void Recorder::trouble(std::string subject, std::string_view message) {
  const std::string name = subject + ": ";
  if (message.starts_with(name)) message.remove_prefix(name.size());
  record(event::Trouble{std::move(subject), std::string(message)});
}

}  // namespace muster
