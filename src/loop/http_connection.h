// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/http_request_parser.h"
#include "loop/http_server.h"
#include "loop/http_server_exchange.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

// One client's connection: reads requests ahead within limits, hands them over one at a time, so
// that answers go out in order, and ends in a way that lets the client see the last answer. Owned
// by the server, which it asks to retire it.
class HttpConnection final : public HttpServerExchange::Line {
 public:
  // The server. It must not drop the connection inside a call; it does so a loop turn later.
  class Owner {
   public:
    // May drop the server, and the connection with it.
    virtual void on_exchange(std::unique_ptr<HttpExchange> exchange) = 0;
    virtual void retire(HttpConnection& connection) = 0;
    // What this connection holds has changed. False: of requests there is too much altogether.
    virtual bool on_held(HttpConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  static Result<std::unique_ptr<HttpConnection>> adopt(Loop& loop, Owner& owner,
                                                       const HttpServer::Limits& limits,
                                                       UniqueFd socket, const SocketAddress& peer,
                                                       std::span<char> read_buffer);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // What it is worth when there are too many: the least is given up first.
  enum class Use { kIdle, kReading, kAnswering };
  Use use() const;
  // Since when it waits for its client.
  Clock::time_point waiting_since() const { return waiting_since_; }
  // Since when the kernel has taken nothing of an answer, as far as note_progress() has seen.
  Clock::time_point stalled_since() const { return stalled_since_; }
  void note_progress();

  size_t requests_held() const { return parser_.held() + queued_bytes_ + unread_.size(); }
  size_t answers_held() const override { return stream_ ? stream_->unsent() : 0; }

  // Ends it at once; whoever answers is told from the loop.
  void cut();

 private:
  HttpConnection(Loop& loop, Owner& owner, const HttpServer::Limits& limits,
                 const SocketAddress& peer);
  void on_data(std::string_view bytes);
  void on_end(int code);
  void on_drained();
  void on_time();

  void write(std::string_view bytes) override;
  bool input_ended() const override { return input_ended_ && queue_.empty() && unread_.empty(); }
  void on_answered(bool keeps_alive) override;
  void on_answer_broken() override;

  void read(std::string_view bytes);
  void go_on();
  void hand_over();
  void answer_refusal();
  void start_closing();
  void linger();
  void retire();
  void post_go_on();
  void watch_time();
  Clock::time_point deadline() const;

  Loop& loop_;
  Owner& owner_;
  const HttpServer::Limits limits_;
  const SocketAddress peer_;
  SocketAddress local_;
  Owned<TcpStream> stream_;
  HttpRequestParser parser_;
  std::deque<HttpRequestParser::Parsed> queue_;  // whole requests
  size_t queued_bytes_ = 0;
  std::string unread_;                      // bytes behind the last request of a full queue
  HttpServerExchange* exchange_ = nullptr;  // who answers now; owned by the handler
  HttpRequestParser::Refusal refusal_;      // comes behind the queue
  enum class State { kOpen, kClosing, kLingering, kRetired } state_ = State::kOpen;
  bool input_ended_ = false;
  size_t discarded_ = 0;
  size_t written_ = 0;     // bytes of answers, ever
  size_t seen_taken_ = 0;  // of these the kernel had taken when it was looked at last
  Clock::time_point waiting_since_;
  Clock::time_point stalled_since_;
  Clock::time_point timer_at_;
  Owned<Timer> timer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster
