// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// A connected TCP socket in the loop. Reads land in a buffer that all streams of one owner share,
// so an idle connection holds no buffer; writes are tried at once and only what the kernel does not
// take is kept. Dropping it closes the socket at once.
class TcpStream : public Handle {
 public:
  struct Callbacks {
    // The bytes lie in the shared buffer: valid during the call only.
    std::function<void(std::string_view)> on_data;
    // Once, the last callback: the peer closed (code 0) or the connection failed (errno).
    std::function<void(int code)> on_end;
    // Everything that was unsent has been taken by the kernel.
    std::function<void()> on_drained;
  };

  // Takes a connected, non-blocking socket. `read_buffer` belongs to the owner and outlives the
  // stream.
  static Result<Owned<TcpStream>> adopt(Loop& loop, UniqueFd socket, std::span<char> read_buffer,
                                        Callbacks callbacks);

  // Ends the stream but not the connection: the socket, for somebody else who goes on with it. All
  // bytes that were written must have been taken by the kernel. Allowed in the stream's callbacks.
  static UniqueFd release(Owned<TcpStream> stream);

  // Never calls back and never fails: a broken connection shows as on_end from the loop. Unsent
  // bytes are not bounded here; whoever writes watches unsent().
  virtual void write(std::string_view bytes) = 0;

  // Bytes that the kernel has not taken yet.
  virtual size_t unsent() const = 0;

  // While reading is off the peer's bytes stay in the kernel, which slows the peer down. A failed
  // connection is then noticed only when reading goes on, or by a write.
  virtual void set_reading(bool on) = 0;

  // Tells the peer that nothing more is written. What the kernel has not taken by then is lost.
  virtual void finish_writing() = 0;

  // From here on dropping the stream cuts the connection (RST) instead of ending it, so that the
  // peer does not take what it got for everything.
  virtual void cut_when_dropped() = 0;

 private:
  virtual UniqueFd take_socket() = 0;
};

}  // namespace muster
