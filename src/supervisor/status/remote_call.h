// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loop/http_server.h"
#include "loop/loop.h"
#include "supervisor/status/job_source.h"

namespace muster {

// A GET that this muster itself sends to the muster of another node, through JobSource::forward,
// and whose answer it reads piece by piece: for what puts together the answers of several nodes.
// Owned by whoever asks; dropping it cancels the request. No callback comes from inside a call.
class RemoteCall {
 public:
  struct Callbacks {
    std::function<void(int status, const HttpHeaders& headers)> on_head;
    std::function<void(std::string_view piece)> on_piece;
    std::function<void()> on_end;   // the answer is whole; the last callback
    std::function<void()> on_lost;  // it never will be: the node went away; the last callback
  };
  // `target` as in a request line: "/api/v1/follow?attempt=0&ranks=8-15". Null: that node of
  // that attempt is this one, or is not connected.
  static std::unique_ptr<RemoteCall> start(Loop& loop, JobSource& source, int attempt, int node,
                                           const std::string& target, Callbacks callbacks);
  virtual ~RemoteCall() = default;

  // While paused nothing is told, and the other node stops sending after a little.
  virtual void set_paused(bool paused) = 0;

 protected:
  RemoteCall() = default;
};

}  // namespace muster
