// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/control_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {

namespace {

constexpr size_t kReadBuffer = size_t{16} << 10;
// What the kernel may hold beyond what is on its way. It would take megabytes of a long answer, and
// a heartbeat would wait behind them all.
constexpr int kHeldByKernel = 64 << 10;
// What a stranger's greeting is shown by.
constexpr size_t kShownOpening = 32;

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

ControlStream::ControlStream(Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      read_buffer_(std::make_unique_for_overwrite<char[]>(kReadBuffer)) {}

Result<std::unique_ptr<ControlStream>> ControlStream::adopt(Loop& loop, UniqueFd socket,
                                                            Callbacks callbacks) {
  std::unique_ptr<ControlStream> control(new ControlStream(std::move(callbacks)));
  ControlStream* raw = control.get();
  // Without it everything works, only slower.
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kHeldByKernel, sizeof kHeldByKernel);
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
  if (expects_first_ && opening_.size() < kShownOpening) {
    opening_.append(bytes.substr(0, kShownOpening - opening_.size()));
  }
  reader_.feed(bytes);
  std::weak_ptr<bool> alive = alive_;
  Frame frame;
  for (;;) {
    FrameReader::Answer answer = reader_.next(&frame);
    if (answer == FrameReader::Answer::kNeedMore) return;
    if (answer == FrameReader::Answer::kMalformed) return strange(reader_.why());
    Result<HostMessage> message = decode_host_message(frame);
    if (!message) return strange(message.error().message);
    expects_first_ = false;
    auto on_message = callbacks_.on_message;
    on_message(std::move(*message));
    if (alive.expired()) return;
  }
}

// A stranger that says who it is, as most servers do in their first line, is best told by that.
void ControlStream::strange(const std::string& why) {
  const std::string_view line =
      std::string_view(opening_).substr(0, opening_.find_first_of("\r\n"));
  const bool tells = expects_first_ && !line.empty() && is_text(line);
  ended({true, 0, tells ? "it says '" + std::string(line) + "'" : why});
}

void ControlStream::ended(const End& end) {
  if (end.malformed) stream_->set_reading(false);
  auto on_end = callbacks_.on_end;
  on_end(end);
}

}  // namespace muster
