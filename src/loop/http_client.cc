// SPDX-License-Identifier: Apache-2.0
#include "loop/http_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "loop/http_response_parser.h"
#include "loop/resolve.h"
#include "loop/socket_address.h"
#include "loop/tcp_connector.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"

namespace muster {

namespace {

std::string host_header(const std::string& host, int port) {
  const std::string bare = host.substr(0, host.find('%'));
  const bool v6 = bare.find(':') != std::string::npos;
  return (v6 ? "[" + bare + "]" : bare) + ":" + std::to_string(port);
}

std::string wire_text(const HttpRequest& request, const std::string& host) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + host + "\r\n";
  for (const auto& [name, value] : request.headers)
    text += name + ": " + value + "\r\n";
  if (!request.body.empty() || request.method != "GET")
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

std::string connect_trouble(const Error& error) {
  if (error.code == ECONNREFUSED) return "connection refused";
  if (error.code == ETIMEDOUT) return "no answer to the connection attempt";
  return error.code != 0 ? std::strerror(error.code) : error.message;
}

}  // namespace

// A connected socket with TLS on it or not. Owned by the call that uses it or, between calls, by
// the client.
class HttpClient::Connection {
 public:
  // Whoever uses it. Each may drop the connection.
  class User {
   public:
    virtual void on_bytes(std::string_view plain) = 0;
    virtual void on_end(Result<void> how) = 0;

   protected:
    ~User() = default;
  };

  static Result<std::unique_ptr<Connection>> adopt(Loop& loop, UniqueFd socket,
                                                   const HttpClient::Server& server) {
    auto connection = std::make_unique<Connection>();
    Connection* raw = connection.get();
    raw->local_address = SocketAddress::local(socket.get()).host();
    auto stream = TcpStream::adopt(loop, std::move(socket), raw->buffer_,
                                   {[raw](std::string_view bytes) { raw->on_data(bytes); },
                                    [raw](int code) { raw->on_end(code); }, [] {}});
    if (!stream) return stream.error();
    raw->stream_ = std::move(*stream);
    if (server.tls) {
      auto session = TlsSession::client(server.tls, server.host);
      if (!session) return session.error();
      raw->tls_ = std::move(*session);
      raw->stream_->write(raw->tls_->take_output());
    }
    return connection;
  }

  void write(std::string_view plain) {
    if (tls_) {
      tls_->send(plain);
      stream_->write(tls_->take_output());
    } else {
      stream_->write(plain);
    }
  }

  // null: nobody. An end meanwhile is kept in `dead`.
  User* user = nullptr;
  bool dead = false;
  std::string local_address;

 private:
  void on_data(std::string_view bytes) {
    if (!tls_) {
      dead = user == nullptr;  // nobody asked for anything
      if (user != nullptr) user->on_bytes(bytes);
      return;
    }
    Result<std::string> plain = tls_->receive(bytes);
    stream_->write(tls_->take_output());
    if (user == nullptr) {
      // A TLS server may send tickets at any time.
      dead = dead || !plain || !plain->empty() || tls_->ended();
    } else if (!plain) {
      user->on_end(plain.error());
    } else if (!plain->empty()) {
      user->on_bytes(*plain);
    }
  }

  void on_end(int code) {
    dead = true;
    if (user == nullptr) return;
    if (code != 0) {
      user->on_end(errno_error(code, "the connection failed"));
    } else if (tls_ && !tls_->ended()) {
      user->on_end(Error{EPROTO, tls_->established() ? "the connection was cut"
                                                     : "TLS: the server closed the connection"});
    } else {
      user->on_end(Result<void>());
    }
  }

  std::array<char, 16384> buffer_;
  std::unique_ptr<TlsSession> tls_;
  Owned<TcpStream> stream_;
};

struct HttpClient::Shared {
  Loop& loop;
  Server server;
  bool open = true;  // the client is there, so a connection is worth keeping
  std::unique_ptr<Connection> idle;
};

class HttpClient::Call final : public HttpCall, private Connection::User {
 public:
  Call(std::shared_ptr<Shared> shared, HttpRequest request, OnPiece on_piece, OnDone on_done)
      : shared_(std::move(shared)),
        request_(std::move(request)),
        on_piece_(on_piece ? std::make_shared<OnPiece>(std::move(on_piece)) : nullptr),
        on_done_(std::move(on_done)) {
    deadline_ = Timer::start(shared_->loop, request_.deadline, [this] {
      finish(Error{ETIMEDOUT, std::string(phase_)});
    });
    std::unique_ptr<Connection> kept = std::move(shared_->idle);
    if (kept && !kept->dead) {
      reused_ = true;
      use(std::move(kept));
    } else {
      look_up();
    }
  }

  std::string local_address() const override { return local_address_; }

 private:
  void look_up() {
    reused_ = false;
    phase_ = "no answer from the name service";
    lookup_ = resolve(shared_->loop, shared_->server.host,
                      [this](Result<std::vector<SocketAddress>> found) {
                        lookup_.reset();
                        if (!found) return finish(found.error());
                        addresses_ = std::move(*found);
                        connect(0);
                      });
  }

  void connect(size_t index) {
    phase_ = "no answer to the connection attempt";
    connector_ = TcpConnector::connect(
        shared_->loop, addresses_[index].with_port(shared_->server.port),
        shared_->server.connect_timeout, [this, index](Result<UniqueFd> socket) {
          connector_.reset();
          if (socket) return begin(std::move(*socket));
          if (index + 1 < addresses_.size()) return connect(index + 1);
          finish(Error{socket.error().code, connect_trouble(socket.error())});
        });
  }

  void begin(UniqueFd socket) {
    auto connection = Connection::adopt(shared_->loop, std::move(socket), shared_->server);
    if (!connection) return finish(connection.error());
    use(std::move(*connection));
  }

  void use(std::unique_ptr<Connection> connection) {
    phase_ = "no answer";
    connection_ = std::move(connection);
    connection_->user = this;
    local_address_ = connection_->local_address;
    parser_.emplace(shared_->server.limits);
    heard_ = false;
    connection_->write(
        wire_text(request_, host_header(shared_->server.host, shared_->server.port)));
  }

  void on_bytes(std::string_view plain) override {
    heard_ = true;
    Result<HttpResponseParser::Progress> progress = parser_->feed(plain);
    if (!progress) return finish(progress.error());
    const bool complete = *progress == HttpResponseParser::Progress::kComplete;
    if (on_piece_ && parser_->has_head()) {
      deadline_.reset();
      if (!hand_over_piece()) return;
    }
    if (complete) finish_well();
  }

  // False: the call was dropped by whoever got the piece.
  bool hand_over_piece() {
    std::string piece = parser_->take_body();
    if (piece.empty()) return true;
    std::shared_ptr<OnPiece> on_piece = on_piece_;
    std::weak_ptr<int> alive = alive_;
    (*on_piece)(parser_->status(), piece);
    return !alive.expired();
  }

  void on_end(Result<void> how) override {
    if (!heard_ && reused_ && request_.repeatable) {
      connection_.reset();
      look_up();
      return;
    }
    if (!how) return finish(how.error());
    Result<void> whole = parser_->finish();
    if (!whole) return finish(whole.error());
    if (on_piece_ && !hand_over_piece()) return;
    finish_well();
  }

  void finish_well() {
    if (parser_->keeps_alive() && shared_->open && !shared_->idle) {
      connection_->user = nullptr;
      shared_->idle = std::move(connection_);
    }
    finish(parser_->take_response());
  }

  // The last thing a call does; whoever is called may drop it.
  void finish(Result<HttpResponse> result) {
    deadline_.reset();
    lookup_.reset();
    connector_.reset();
    connection_.reset();
    OnDone on_done = std::exchange(on_done_, nullptr);
    on_done(std::move(result));
  }

  std::shared_ptr<Shared> shared_;
  HttpRequest request_;
  std::shared_ptr<OnPiece> on_piece_;
  OnDone on_done_;
  std::string_view phase_;  // what the deadline will be blamed on
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  Owned<Timer> deadline_;
  Owned<Lookup> lookup_;
  std::vector<SocketAddress> addresses_;
  Owned<TcpConnector> connector_;
  std::unique_ptr<Connection> connection_;
  std::string local_address_;
  std::optional<HttpResponseParser> parser_;
  bool reused_ = false;  // the connection was kept from an earlier call
  bool heard_ = false;   // a byte of the answer has come
};

HttpClient::HttpClient(Loop& loop, Server server)
    : shared_(new Shared{loop, std::move(server), true, nullptr}) {}

HttpClient::~HttpClient() {
  shared_->open = false;
  shared_->idle.reset();
}

std::unique_ptr<HttpCall> HttpClient::send(HttpRequest request, OnDone on_done) {
  return std::make_unique<Call>(shared_, std::move(request), nullptr, std::move(on_done));
}

std::unique_ptr<HttpCall> HttpClient::stream(HttpRequest request, OnPiece on_piece,
                                             OnDone on_done) {
  return std::make_unique<Call>(shared_, std::move(request), std::move(on_piece),
                                std::move(on_done));
}

}  // namespace muster
