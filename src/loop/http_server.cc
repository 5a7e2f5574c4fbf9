// SPDX-License-Identifier: Apache-2.0
#include "loop/http_server.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <ctime>
#include <unordered_map>

#include "loop/http_answer.h"
#include "loop/http_connection.h"
#include "loop/tcp_listener.h"

namespace muster {

namespace {

constexpr size_t kReadBuffer = size_t{16} << 10;
// Of the descriptors that the process may have clients get one in so many: whatever they do, enough
// are left for what the process is there for.
constexpr size_t kDescriptorShare = 4;

HttpServer::Limits within_descriptors(HttpServer::Limits limits) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    limits.max_connections =
        std::min<size_t>(limits.max_connections, limit.rlim_cur / kDescriptorShare);
  return limits;
}

class LoopHttpServer final : public HttpServer, private HttpConnection::Owner {
 public:
  LoopHttpServer(Loop& loop, Handler handler, Limits limits)
      : loop_(loop),
        handler_(std::make_shared<Handler>(std::move(handler))),
        limits_(within_descriptors(limits)) {}

  Result<void> listen(const std::string& address, int port) {
    auto listener = TcpListener::listen(
        loop_, address, port,
        {[this](UniqueFd socket, const SocketAddress& peer) { accept(std::move(socket), peer); },
         // Out of descriptors: the longest idle client frees one.
         [this](const std::string&) { make_room(); }});
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    return {};
  }

  int port() const override { return listener_->port(); }
  size_t connections() const override { return connections_.size(); }

 private:
  struct Entry {
    std::unique_ptr<HttpConnection> connection;
    size_t requests_held = 0;
    size_t answers_held = 0;
  };

  void accept(UniqueFd socket, const SocketAddress& peer) {
    if (connections_.size() >= limits_.max_connections && !make_room()) return turn_away(socket);
    if (!read_buffer_) read_buffer_ = std::make_unique<char[]>(kReadBuffer);
    auto connection = HttpConnection::adopt(loop_, *this, limits_, std::move(socket), peer,
                                            {read_buffer_.get(), kReadBuffer});
    if (!connection) return;  // the kernel has no more to give: the client sees a close
    HttpConnection* key = connection->get();
    connections_[key].connection = std::move(*connection);
  }

  // Ends the connection that is worth least: one between two requests, or else one that sends its
  // request slowly; of these the one that has waited longest. False: all are being answered.
  bool make_room() {
    HttpConnection* least = nullptr;
    for (const auto& [connection, entry] : connections_) {
      if (connection->use() == HttpConnection::Use::kAnswering) continue;
      if (least == nullptr || connection->use() < least->use() ||
          (connection->use() == least->use() &&
           connection->waiting_since() < least->waiting_since()))
        least = connection;
    }
    if (least == nullptr) return false;
    least->cut();
    return true;
  }

  // Whether the client sees it depends on when it reads: nobody waits for that.
  static void turn_away(const UniqueFd& socket) {
    constexpr int kStatus = 503;
    HttpAnswerHead head;
    head.status = kStatus;
    head.keeps_alive = false;
    const std::string body = http_error_body(kStatus, "too many connections");
    head.length = static_cast<int64_t>(body.size());
    head.unix_time = static_cast<int64_t>(std::time(nullptr));
    const std::string text = http_head_text(head) + body;
    (void)!send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void on_exchange(std::unique_ptr<HttpExchange> exchange) override {
    const std::shared_ptr<Handler> handler = handler_;
    (*handler)(std::move(exchange));
  }

  void retire(HttpConnection& connection) override {
    const auto found = connections_.find(&connection);
    if (found == connections_.end()) return;
    requests_held_ -= found->second.requests_held;
    answers_held_ -= found->second.answers_held;
    retired_.push_back(std::move(found->second.connection));
    connections_.erase(found);
    if (retired_.size() > 1) return;
    loop_.post([this, alive = std::weak_ptr<Handler>(handler_)] {
      if (!alive.expired()) std::exchange(retired_, {}).clear();
    });
  }

  bool on_held(HttpConnection& connection) override {
    const auto found = connections_.find(&connection);
    if (found == connections_.end()) return true;
    Entry& entry = found->second;
    requests_held_ += connection.requests_held() - entry.requests_held;
    answers_held_ += connection.answers_held() - entry.answers_held;
    entry.requests_held = connection.requests_held();
    entry.answers_held = connection.answers_held();
    const bool fits = requests_held_ <= limits_.max_requests_held;
    while (answers_held_ > limits_.max_answers_held)
      cut_longest_stalled();
    return fits;
  }

  void cut_longest_stalled() {
    HttpConnection* longest = nullptr;
    for (const auto& [connection, entry] : connections_) {
      if (entry.answers_held == 0) continue;
      connection->note_progress();
      if (longest == nullptr || connection->stalled_since() < longest->stalled_since())
        longest = connection;
    }
    MUST(longest != nullptr);
    longest->cut();
  }

  Loop& loop_;
  const std::shared_ptr<Handler> handler_;
  const Limits limits_;
  std::unique_ptr<char[]> read_buffer_;
  std::unordered_map<HttpConnection*, Entry> connections_;
  std::vector<std::unique_ptr<HttpConnection>> retired_;
  size_t requests_held_ = 0;
  size_t answers_held_ = 0;
  Owned<TcpListener> listener_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(Loop& loop, const std::string& address,
                                                       int port, Handler handler, Limits limits) {
  auto server = std::make_unique<LoopHttpServer>(loop, std::move(handler), limits);
  if (Result<void> listening = server->listen(address, port); !listening) return listening.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(Loop& loop, const std::string& address,
                                                       int port, Handler handler) {
  return listen(loop, address, port, std::move(handler), Limits{});
}

}  // namespace muster
