// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "loop/socket_address.h"
#include "store/connection.h"
#include "store/greeting.h"
#include "store/store.h"
#include "store/wire.h"

namespace muster {

// A client of PyTorch's TCPStore protocol for worker programs: blocking, without a loop. Works with
// muster's server and with PyTorch's own: the current one, if it knows PING (2.2 does not), and
// that of 1.13, which has no append, list_keys, queues and barrier (EOPNOTSUPP; under a prefix
// there is a barrier).
//
// Unlike PyTorch's client no call waits longer than it was told, whatever the server does: replies
// that PyTorch awaits for ever are awaited for timeout(), at least 10 s unless told otherwise. One
// that is late costs the connection, since it could not be told from the next one.
class StoreClient final : public Store {
 public:
  struct Options {
    std::string host;  // a name or a literal address (MASTER_ADDR)
    int port = 0;      // MASTER_PORT
    // For connecting as a whole, retries included, and the store's timeout() afterwards.
    Duration timeout = std::chrono::seconds(300);
    // Adds 1 to the key "init/", as PyTorch's clients do that were given a world size. A server of
    // PyTorch waits until all members did.
    bool count_as_member = false;
    // Other replies than a wait's are awaited for the store's timeout, but never less than this: a
    // short timeout for keys must not cost the connection when the server is slow for a moment.
    Duration least_reply_time = std::chrono::seconds(10);
    // Between two attempts to connect. PyTorch's; who expects the server in a moment asks more.
    Duration first_pause = std::chrono::milliseconds(500);
    Duration longest_pause = std::chrono::seconds(60);
    // The server is known to be there: if it cannot be reached, it is there no more.
    bool once = false;
  };

  // Retries until a server greets correctly or the time is over; the pauses grow by half, each +-50
  // %.
  static Result<std::unique_ptr<StoreClient>> connect(const Options& options);

  using Store::wait;
  Result<void> set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key) override;
  Result<int64_t> add(std::string_view key, int64_t delta) override;
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired) override;
  Result<bool> check(Keys keys) override;
  Result<void> wait(Keys keys, Duration timeout) override;
  Result<void> append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> multi_get(Keys keys) override;
  Result<void> multi_set(Items items) override;
  Result<bool> erase(std::string_view key) override;
  Result<int64_t> num_keys() override;
  Result<std::vector<std::string>> list_keys() override;
  Result<void> barrier(std::string_view key, int64_t world_size, Duration timeout) override;
  Result<void> queue_push(std::string_view key, std::string_view value) override;
  Result<std::string> queue_pop(std::string_view key, bool block) override;
  Result<int64_t> queue_length(std::string_view key) override;
  Duration timeout() const override;
  void set_timeout(Duration timeout) override;
  Result<std::unique_ptr<Store>> clone() override;

  // This end of the connection.
  SocketAddress local_address() const;

 private:
  StoreClient(Options options, Greeted greeted)
      : options_(std::move(options)),
        connection_(std::move(greeted.connection)),
        dialect_(greeted.dialect) {}

  // These run under the lock. `read` takes the reply from the connection.
  template <typename Reply>
  Result<Reply> ask(const std::string& request,
                    const std::function<Result<Reply>(Connection&, Deadline)>& read);
  Result<void> tell(const std::string& request);
  Result<void> tell_legacy(std::string request);
  Result<void> count_as_member();
  Result<void> wait_for_keys(Keys keys, Duration timeout);
  Result<bool> check_keys(Keys keys);
  Result<void> await_stop(const std::string& request, Duration timeout, const std::string& what);
  Result<void> cancel_wait(const std::string& what, Duration timeout);
  Deadline reply_deadline() const;
  Error lost(Error error);

  Options options_;  // its timeout may change
  Connection connection_;
  Dialect dialect_;
  std::optional<Error> lost_;  // why the connection is of no use any more
  mutable std::mutex mutex_;
};

}  // namespace muster
