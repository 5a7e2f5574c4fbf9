// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "loop/http_exchange.h"
#include "loop/result.h"
#include "supervisor/rendezvous/remote_request.h"

namespace muster {

// Answers a client's requests with what other nodes say: copies head and pieces, takes no more from
// a node than the client takes from us, and lets go of either when the other is gone. Owned by
// Rendezvous.
class Forwarder {
 public:
  // As NodeRequests::start().
  using Start = std::function<Result<std::unique_ptr<RemoteRequest>>(
      RemoteQuestion question, RemoteRequest::Callbacks callbacks)>;

  Forwarder();
  ~Forwarder();

  // Whatever comes of it, the exchange gets its answer here.
  void forward(std::unique_ptr<HttpExchange> exchange, const Start& start);

  size_t open() const { return copies_.size(); }

 private:
  struct Copy;
  void head(int64_t id, int status, HttpHeaders headers, int64_t length);
  void piece(int64_t id, std::string_view bytes);
  void give_credit(int64_t id);
  void end(int64_t id);
  void broken(int64_t id, int status, const std::string& why);

  std::unordered_map<int64_t, std::unique_ptr<Copy>> copies_;
  int64_t last_id_ = 0;
};

}  // namespace muster
