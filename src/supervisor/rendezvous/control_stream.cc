// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/control_stream.h"

#include <cstring>
#include <utility>

namespace muster {

namespace {

constexpr size_t kReadBuffer = size_t{16} << 10;

}  // namespace

ControlStream::ControlStream(Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      read_buffer_(std::make_unique_for_overwrite<char[]>(kReadBuffer)) {}

Result<std::unique_ptr<ControlStream>> ControlStream::adopt(Loop& loop, UniqueFd socket,
                                                            Callbacks callbacks) {
  std::unique_ptr<ControlStream> control(new ControlStream(std::move(callbacks)));
  ControlStream* raw = control.get();
  auto stream = TcpStream::adopt(
      loop, std::move(socket), {raw->read_buffer_.get(), kReadBuffer},
      {[raw](std::string_view bytes) { raw->received(bytes); },
       [raw](int code) {
         raw->ended({false, code, code == 0 ? "connection closed" : std::strerror(code)});
       },
       [raw] {
         // Copied, because whoever is called may replace or drop them.
         if (auto on_drained = raw->callbacks_.on_drained) on_drained();
       }});
  if (!stream) return stream.error();
  control->stream_ = std::move(*stream);
  return control;
}

void ControlStream::received(std::string_view bytes) {
  reader_.feed(bytes);
  std::weak_ptr<bool> alive = alive_;
  Frame frame;
  for (;;) {
    FrameReader::Answer answer = reader_.next(&frame);
    if (answer == FrameReader::Answer::kNeedMore) return;
    if (answer == FrameReader::Answer::kMalformed) return ended({true, 0, reader_.why()});
    Result<HostMessage> message = decode_host_message(frame);
    if (!message) return ended({true, 0, message.error().message});
    auto on_message = callbacks_.on_message;
    on_message(std::move(*message));
    if (alive.expired()) return;
  }
}

void ControlStream::ended(const End& end) {
  if (end.malformed) stream_->set_reading(false);
  auto on_end = callbacks_.on_end;
  on_end(end);
}

}  // namespace muster
