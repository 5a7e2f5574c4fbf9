// SPDX-License-Identifier: Apache-2.0
#include "loop/http_client.h"

#include <doctest/doctest.h>

#include <deque>

#include "loop/http_response_parser.h"
#include "loop/loop_test.h"
#include "loop/tcp_listener.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"

namespace muster {

namespace {

// A server that knows no HTTP: it keeps what comes and sends what the test says.
struct Peer {
  std::vector<char> buffer = std::vector<char>(4096);
  std::string got;
  bool ended = false;
  Owned<TcpStream> stream;
};

struct HttpTest : LoopTest {
  std::deque<Peer> peers;
  std::function<void(Peer&)> on_request = [](Peer&) {};
  Owned<TcpListener> listener;
  std::unique_ptr<HttpClient> client;
  std::unique_ptr<HttpCall> call;
  std::vector<Result<HttpResponse>> results;
  std::vector<std::string> pieces;

  HttpTest() {
    auto listening = TcpListener::listen(
        loop, "127.0.0.1", 0,
        {[this](UniqueFd socket, const SocketAddress&) { accept(std::move(socket)); }, {}});
    REQUIRE(listening.has_value());
    listener = std::move(*listening);
    HttpClient::Server server;
    server.host = "127.0.0.1";
    server.port = listener->port();
    server.limits = {2000, 10'000};
    client = std::make_unique<HttpClient>(loop, server);
  }

  void accept(UniqueFd socket) {
    Peer& peer = peers.emplace_back();
    auto stream = TcpStream::adopt(loop, std::move(socket), peer.buffer,
                                   {[this, &peer](std::string_view bytes) {
                                      peer.got += bytes;
                                      if (peer.got.find("\r\n\r\n") != std::string::npos)
                                        on_request(peer);
                                    },
                                    [&peer](int) { peer.ended = true; }, [] {}});
    REQUIRE(stream.has_value());
    peer.stream = std::move(*stream);
  }

  void send(HttpRequest request = {}) {
    call = client->send(std::move(request),
                        [this](Result<HttpResponse> result) { results.push_back(result); });
    CHECK(results.empty());  // never from inside the call
  }

  // What one request comes to when `answer` is sent, and the connection closed if asked to.
  Result<HttpResponse> answer_with(const std::string& answer, bool then_close = false) {
    results.clear();
    on_request = [answer, then_close](Peer& peer) {
      peer.stream->write(answer);
      if (then_close) peer.stream.reset();
    };
    send();
    REQUIRE(run_until([&] { return !results.empty(); }));
    CHECK(results.size() == 1);
    return results.front();
  }
};

Result<HttpResponseParser::Progress> feed_split(HttpResponseParser& parser,
                                                const std::string& bytes, size_t step) {
  Result<HttpResponseParser::Progress> progress = HttpResponseParser::Progress::kNeedsMore;
  for (size_t at = 0; at < bytes.size() && progress; at += step)
    progress = parser.feed(std::string_view(bytes).substr(at, step));
  return progress;
}

}  // namespace

TEST_CASE_FIXTURE(HttpTest, "a request goes out whole and its answer comes back whole") {
  on_request = [](Peer& peer) {
    peer.stream->write("HTTP/1.1 201 Created\r\nX-Etcd-Index: 7\r\nContent-Length: 5\r\n\r\nhello");
  };
  send({.method = "PUT", .target = "/v2/x?y=1", .headers = {{"A", "b"}}, .body = "value=1"});
  REQUIRE(run_until([&] { return !results.empty(); }));
  REQUIRE(results[0].has_value());
  CHECK(results[0]->status == 201);
  CHECK(results[0]->header("x-etcd-index") == "7");
  CHECK(results[0]->header("none") == "");
  CHECK(results[0]->body == "hello");
  CHECK(call->local_address() == "127.0.0.1");
  CHECK(peers[0].got ==
        "PUT /v2/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(listener->port()) +
            "\r\nA: b\r\nContent-Length: 7\r\n\r\nvalue=1");
}

TEST_CASE(
    "an answer may be split anywhere, in chunks or by bytes, with trailers and a 100 before") {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\nHEADER: Some Value\r\n\r\n"
      "5\r\nhello\r\n1;x=y\r\n,\r\n6\r\n world\r\n0\r\nT: trailing\r\n\r\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HttpResponseParser parser({1000, 1000});
    auto progress = feed_split(parser, bytes, step);
    INFO(step, progress ? "" : progress.error().message);
    REQUIRE(progress.has_value());
    CHECK(*progress == HttpResponseParser::Progress::kComplete);
    CHECK(parser.keeps_alive());
    HttpResponse response = parser.take_response();
    CHECK(response.status == 200);
    CHECK(response.body == "hello, world");
    CHECK(response.header("header") == "Some Value");
    CHECK(response.header("t") == "");
  }
}

TEST_CASE_FIXTURE(HttpTest, "one connection serves one request after the other") {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  for (int i = 0; i < 3; ++i)
    CHECK(answer_with(ok)->body == "ok");
  CHECK(peers.size() == 1);
}

TEST_CASE_FIXTURE(HttpTest, "two requests at the same time do not wait for each other") {
  on_request = [&](Peer& peer) {
    if (&peer == &peers[1]) peer.stream->write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  };
  send();
  REQUIRE(run_until([&] { return !peers.empty() && !peers[0].got.empty(); }));
  int second = 0;
  auto other = client->send({}, [&](Result<HttpResponse> result) { second = result->status; });
  CHECK(run_until([&] { return second == 200; }));
  CHECK(results.empty());
}

TEST_CASE_FIXTURE(HttpTest, "a connection that the server closed meanwhile is replaced unnoticed") {
  CHECK(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")->status == 200);
  SUBCASE("before the next request") {
    peers[0].stream.reset();
  }
  SUBCASE("as the next request comes") {}
  results.clear();
  on_request = [&](Peer& peer) {
    if (&peer == &peers[0]) return peer.stream.reset();
    peer.stream->write("HTTP/1.1 204 No Content\r\n\r\n");
  };
  send();
  REQUIRE(run_until([&] { return !results.empty(); }));
  REQUIRE(results[0].has_value());
  CHECK(results[0]->status == 204);
  CHECK(peers.size() == 2);
}

TEST_CASE_FIXTURE(HttpTest, "what must not be sent twice is not") {
  CHECK(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")->status == 200);
  results.clear();
  on_request = [&](Peer& peer) { peer.stream.reset(); };
  send({.method = "POST", .repeatable = false});
  REQUIRE(run_until([&] { return !results.empty(); }));
  CHECK_FALSE(results[0].has_value());
  CHECK(peers.size() == 1);
}

TEST_CASE_FIXTURE(HttpTest, "bytes that nobody asked for cost the connection") {
  CHECK(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500")->status == 200);
  CHECK(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")->status == 200);
  CHECK(peers.size() == 2);
}

TEST_CASE_FIXTURE(HttpTest, "an answer without length lasts until the connection ends") {
  auto result = answer_with("HTTP/1.1 200 OK\r\n\r\nto the end", true);
  REQUIRE(result.has_value());
  CHECK(result->body == "to the end");
}

TEST_CASE_FIXTURE(HttpTest,
                  "an answer that is cut, malformed or too large is an error that says so") {
  auto message = [&](const std::string& answer, bool then_close) {
    auto result = answer_with(answer, then_close);
    return result ? "no error" : result.error().message;
  };
  CHECK(message("", true) == "the connection ended before the answer");
  CHECK(message("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", true) ==
        "the connection ended within the answer");
  CHECK(message("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true) ==
        "the connection ended within the answer");
  CHECK(message("SSH-2.0-OpenSSH_9.2\r\n", false).starts_with("the answer is not HTTP ("));
  CHECK(message("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", false)
            .starts_with("the answer is not HTTP ("));
  CHECK(message("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", false)
            .starts_with("the answer is not HTTP ("));
  CHECK(message("HTTP/1.1 200 OK\r\nA: " + std::string(2000, 'x'), false) ==
        "the answer's head is too large");
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 100; ++i)
    many += ":\r\nA:\r\n";
  CHECK_FALSE(message(many, false) == "no error");
  CHECK(message("HTTP/1.1 200 OK\r\n\r\n" + std::string(10'001, 'x'), false) ==
        "the answer's body is too large");
  CHECK(answer_with("HTTP/1.1 200 OK\r\n\r\n" + std::string(10'000, 'x'), true)->body.size() ==
        10'000);
}

TEST_CASE_FIXTURE(HttpTest, "a server that does not answer is given up at the deadline") {
  send({.deadline = Milliseconds(50)});
  REQUIRE(run_until([&] { return !results.empty(); }));
  REQUIRE_FALSE(results[0].has_value());
  CHECK(results[0].error().message == "no answer");
  CHECK(results[0].error().code == ETIMEDOUT);
  CHECK(run_until([&] { return peers[0].ended; }));
}

TEST_CASE_FIXTURE(HttpTest, "who listens nowhere refuses") {
  listener.reset();
  send();
  REQUIRE(run_until([&] { return !results.empty(); }));
  REQUIRE_FALSE(results[0].has_value());
  CHECK(results[0].error().message == "connection refused");
}

TEST_CASE_FIXTURE(HttpTest, "a dropped call is silent and its connection closed") {
  send();
  REQUIRE(run_until([&] { return !peers.empty() && !peers[0].got.empty(); }));
  call.reset();
  CHECK(run_until([&] { return peers[0].ended; }));
  CHECK(results.empty());
}

TEST_CASE_FIXTURE(HttpTest, "a call outlives its client") {
  send();
  client.reset();
  on_request = [](Peer& peer) {
    peer.stream->write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  };
  REQUIRE(run_until([&] { return !results.empty(); }));
  CHECK(results[0].has_value());
  CHECK(run_until([&] { return peers[0].ended; }));
}

TEST_CASE_FIXTURE(HttpTest,
                  "a stream's pieces come as they arrive, without bound in all or in time") {
  Peer* server = nullptr;
  on_request = [&](Peer& peer) {
    server = &peer;
    peer.stream->write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  };
  size_t total = 0;
  call = client->stream(
      {.deadline = Milliseconds(100)},
      [&](int status, std::string_view piece) {
        CHECK(status == 200);
        total += piece.size();
      },
      [this](Result<HttpResponse> result) { results.push_back(result); });
  REQUIRE(run_until([&] { return total == 2; }));
  bool later = false;
  auto past_the_deadline = Timer::start(loop, Milliseconds(150), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  for (int i = 0; i < 20; ++i) {
    server->stream->write("3e8\r\n" + std::string(1000, 'x') + "\r\n");
    REQUIRE(run_until([&] { return total == 2u + 1000u * static_cast<size_t>(i + 1); }));
  }
  CHECK(results.empty());
  server->stream->write("0\r\n\r\n");
  REQUIRE(run_until([&] { return !results.empty(); }));
  REQUIRE(results[0].has_value());
  CHECK(results[0]->body == "");
}

TEST_CASE_FIXTURE(HttpTest, "a call may be dropped by whoever gets a piece of it") {
  on_request = [&](Peer& peer) { peer.stream->write("HTTP/1.1 200 OK\r\n\r\nabc"); };
  int pieces_seen = 0;
  call = client->stream(
      {},
      [&](int, std::string_view) {
        ++pieces_seen;
        call.reset();
      },
      [this](Result<HttpResponse> result) { results.push_back(result); });
  REQUIRE(run_until([&] { return pieces_seen == 1; }));
  CHECK(run_until([&] { return peers[0].ended; }));
  CHECK(results.empty());
}

}  // namespace muster
