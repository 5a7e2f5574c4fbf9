// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loop/http_exchange.h"
#include "loop/http_request_parser.h"
#include "loop/loop.h"

namespace muster {

// The handler's end of a request that came over a connection. The two know each other until one of
// them goes.
class HttpServerExchange final : public HttpExchange {
 public:
  // The connection. No function of it calls back or drops it.
  class Line {
   public:
    virtual void write(std::string_view bytes) = 0;
    virtual size_t answers_held() const = 0;
    // No request can follow.
    virtual bool input_ended() const = 0;
    virtual void on_answered(bool keeps_alive) = 0;
    // Half an answer went out. Its end must not look like that of a whole one.
    virtual void on_answer_broken() = 0;

   protected:
    ~Line() = default;
  };

  HttpServerExchange(Loop& loop, Line& line, HttpRequestParser::Parsed parsed)
      : loop_(loop), line_(&line), parsed_(std::move(parsed)) {}
  ~HttpServerExchange() override;

  const HttpServerRequest& request() const override { return parsed_.request; }
  void set_callbacks(Callbacks callbacks) override;
  void reply(int status, HttpHeaders headers, std::string body) override;
  void begin(int status, HttpHeaders headers, int64_t length) override;
  void write(std::string_view piece) override;
  void finish() override;
  size_t unsent() const override { return line_ != nullptr ? line_->answers_held() : 0; }

  // By the connection. The last thing it does.
  void on_drained();
  void on_line_gone();
  // An answer that only the client's going ends.
  bool is_endless() const { return begun_ && length_ < 0; }

 private:
  bool start(int status, HttpHeaders headers, int64_t length);
  void end();
  void post_gone();

  Loop& loop_;
  Line* line_;  // null: answered, or gone
  HttpRequestParser::Parsed parsed_;
  std::shared_ptr<Callbacks> callbacks_;
  std::string head_;
  int64_t length_ = -1;
  int64_t sent_ = 0;
  bool begun_ = false;
  bool has_body_ = true;
  bool keeps_alive_ = false;
  bool gone_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster
