// SPDX-License-Identifier: Apache-2.0
#include "loop/http_server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <map>

#include "loop/fd_limit.h"
#include "loop/loop_test.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"

namespace muster {

namespace {

// A client that knows no HTTP: it sends what the test says and keeps what comes.
struct Client {
  std::vector<char> buffer = std::vector<char>(65536);
  std::string got;
  bool ended = false;
  int end_code = -1;
  Owned<TcpStream> stream;

  void send(std::string_view bytes) { stream->write(bytes); }
  size_t count(std::string_view text) const {
    size_t found = 0;
    for (size_t at = got.find(text); at != std::string::npos; at = got.find(text, at + 1))
      ++found;
    return found;
  }
  bool has(std::string_view text) const { return got.find(text) != std::string::npos; }
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

struct ServerTest : LoopTest {
  std::deque<Client> clients;
  std::deque<std::unique_ptr<HttpExchange>> kept;  // by handlers that answer later
  std::vector<HttpServerRequest> requests;
  std::map<std::string, HttpServer::Handler> paths;
  std::unique_ptr<HttpServer> server;

  ServerTest() {
    start({});
    on("/", [](auto exchange) { exchange->reply(200, {{"X-A", "b"}}, "hello"); });
    on("/echo", [](auto exchange) {
      const std::string body = exchange->request().body;
      exchange->reply(200, {}, "<" + body + ">");
    });
    on("/keep", [this](auto exchange) { kept.push_back(std::move(exchange)); });
    on("/drop", [](auto exchange) { exchange.reset(); });
  }

  void start(HttpServer::Limits limits) {
    server.reset();
    auto listening = HttpServer::listen(
        loop, "127.0.0.1", 0,
        [this](std::unique_ptr<HttpExchange> exchange) {
          requests.push_back(exchange->request());
          const auto found = paths.find(exchange->request().path);
          if (found == paths.end()) return exchange->reply(404, {}, "");
          found->second(std::move(exchange));
        },
        limits);
    REQUIRE(listening.has_value());
    server = std::move(*listening);
  }

  void on(const std::string& path, HttpServer::Handler handler) {
    paths[path] = std::move(handler);
  }

  Client& connect(int receive_buffer = 0) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer > 0)
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    SocketAddress at = *SocketAddress::parse("127.0.0.1", server->port());
    REQUIRE(::connect(socket.get(), at.raw(), at.size()) == 0);
    REQUIRE(fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0);
    Client& client = clients.emplace_back();
    auto stream = TcpStream::adopt(loop, std::move(socket), client.buffer,
                                   {[&client](std::string_view bytes) { client.got += bytes; },
                                    [&client](int code) {
                                      client.ended = true;
                                      client.end_code = code;
                                    },
                                    [] {}});
    REQUIRE(stream.has_value());
    client.stream = std::move(*stream);
    return client;
  }

  Client& ask(std::string_view request) {
    Client& client = connect();
    client.send(request);
    return client;
  }

  // What a client gets until the server closes.
  std::string ask_to_the_end(std::string_view request) {
    Client& client = ask(request);
    REQUIRE(run_until([&] { return client.ended; }));
    CHECK(client.end_code == 0);
    return client.got;
  }
};

}  // namespace

TEST_SUITE("http server") {
  TEST_CASE_FIXTURE(ServerTest, "a request is answered, and the next on the same connection") {
    Client& client = ask(kGet);
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(client.got.substr(0, 17) == "HTTP/1.1 200 OK\r\n");
    CHECK(client.has("\r\nX-A: b\r\n"));
    CHECK(client.has("\r\nContent-Length: 5\r\n"));
    CHECK(client.has("\r\nDate: "));
    CHECK_FALSE(client.has("Connection:"));
    client.got.clear();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    REQUIRE(run_until([&] { return client.has("<abc>"); }));
    CHECK(server->connections() == 1);
    CHECK(requests.back().peer.port() != 0);
    CHECK(requests.back().local.port() == server->port());
  }

  TEST_CASE_FIXTURE(ServerTest, "answers go out in the order of the requests") {
    Client& client = ask(get("/keep") + get("/") + get("/keep") + get("/echo"));
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    CHECK(requests.size() == 1);  // nobody is asked before his turn
    kept[0]->reply(200, {}, "first");
    REQUIRE(run_until([&] { return kept.size() == 2; }));
    kept[1]->reply(200, {}, "third");
    REQUIRE(run_until([&] { return client.has("<>"); }));
    CHECK(client.got.find("first") < client.got.find("hello"));
    CHECK(client.got.find("hello") < client.got.find("third"));
  }

  TEST_CASE_FIXTURE(ServerTest, "HEAD gets the head of GET and nothing else") {
    const std::string got =
        ask_to_the_end("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK(got.find("Content-Length: 5\r\n") != std::string::npos);
    CHECK(got.find("hello") == std::string::npos);
    CHECK(got.substr(got.size() - 4) == "\r\n\r\n");
  }

  TEST_CASE_FIXTURE(ServerTest, "whoever streams an answer to HEAD is told to stop") {
    bool gone = false;
    on("/stream", [&](auto exchange) {
      exchange->set_callbacks({nullptr, [&] { gone = true; }});
      exchange->begin(200, {});
      exchange->write("data");
      kept.push_back(std::move(exchange));
    });
    Client& client = ask("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n" + get("/"));
    REQUIRE(run_until([&] { return gone && client.has("hello"); }));
    CHECK_FALSE(client.has("data"));
  }

  TEST_CASE_FIXTURE(ServerTest, "an answer of unknown length goes out in chunks") {
    on("/stream", [](auto exchange) {
      exchange->begin(200, {});
      exchange->write("0123456789abcdef");
      exchange->write("");  // is not the end
      exchange->write("x");
      exchange->finish();
    });
    Client& client = ask(get("/stream") + get("/"));
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(client.has(
        "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n1\r\nx\r\n0\r\n\r\nHTTP"));
  }

  TEST_CASE_FIXTURE(ServerTest, "HTTP/1.0 gets no chunks, and a close unless it asks to be kept") {
    on("/stream", [](auto exchange) {
      exchange->begin(200, {});
      exchange->write("data");
      exchange->finish();
    });
    const std::string got =
        ask_to_the_end("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(got.find("chunked") == std::string::npos);
    CHECK(got.substr(got.size() - 8) == "\r\n\r\ndata");
    CHECK(ask_to_the_end("GET / HTTP/1.0\r\n\r\n").find("hello") != std::string::npos);
    Client& client = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(client.has("Connection: keep-alive\r\n"));
    client.send("GET / HTTP/1.0\r\n\r\n");
    REQUIRE(run_until([&] { return client.count("hello") == 2 && client.ended; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "an answer of known length goes out as it is") {
    on("/sized", [](auto exchange) {
      exchange->begin(200, {}, 6);
      exchange->write("abc");
      exchange->write("defghi");  // more than was said is not sent
      exchange->finish();
    });
    Client& client = ask(get("/sized") + get("/"));
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(client.has("Content-Length: 6\r\n\r\nabcdefHTTP/1.1"));
  }

  TEST_CASE_FIXTURE(ServerTest, "half an answer ends in a reset, not in an end") {
    on("/half", [](auto exchange) {
      exchange->begin(200, {});
      exchange->write("abc");
    });
    on("/short", [](auto exchange) {
      exchange->begin(200, {}, 6);
      exchange->write("abc");
      exchange->finish();
    });
    for (const char* path : {"/half", "/short"}) {
      Client& client = ask(get(path));
      REQUIRE(run_until([&] { return client.ended; }));
      CHECK(client.end_code == ECONNRESET);
    }
    REQUIRE(run_until([&] { return server->connections() == 0; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "whom nobody answers gets 500") {
    Client& client = ask(get("/drop") + get("/"));
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(client.got.substr(0, 13) == "HTTP/1.1 500 ");
  }

  TEST_CASE_FIXTURE(ServerTest, "a malformed request gets its 4xx behind the answers before it") {
    const std::string got = ask_to_the_end(get("/") + "GET  / HTTP/1.1\r\n\r\n" + get("/"));
    CHECK(got.substr(0, 13) == "HTTP/1.1 200 ");
    CHECK(got.find("HTTP/1.1 400 ") > got.find("hello"));
    CHECK(got.find("Connection: close") != std::string::npos);
    CHECK(requests.size() == 1);
  }

  TEST_CASE_FIXTURE(ServerTest, "who sends on after a malformed request still sees why") {
    // Unread bytes would make the kernel send a reset, which overtakes the answer.
    Client& client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
    client.send(std::string(300'000, 'x'));
    REQUIRE(run_until([&] { return client.ended; }));
    CHECK(client.got.substr(0, 13) == "HTTP/1.1 413 ");
    CHECK(client.end_code == 0);
  }

  TEST_CASE_FIXTURE(ServerTest, "who never stops sending after a malformed request is cut off") {
    Client& client = ask("x\r\n");
    client.send(std::string(32 << 20, 'x'));
    REQUIRE(run_until([&] { return client.ended; }));
    REQUIRE(run_until([&] { return server->connections() == 0; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "a client that waits for it is told to go on") {
    Client& client = ask(get("/keep") +
                         "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                         "Content-Length: 3\r\n\r\n");
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    CHECK_FALSE(client.has("100 Continue"));
    kept[0]->reply(200, {}, "first");
    REQUIRE(run_until([&] { return client.has("HTTP/1.1 100 Continue\r\n\r\n"); }));
    client.send("abc");
    REQUIRE(run_until([&] { return client.has("<abc>"); }));
    CHECK(client.count("100 Continue") == 1);
  }

  TEST_CASE_FIXTURE(ServerTest, "a client that has said all it will say gets its answer") {
    Client& client = ask(get("/keep"));
    client.stream->finish_writing();
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    loop.run_until([] { return false; }, Milliseconds(20));
    kept[0]->reply(200, {}, "answer");
    REQUIRE(run_until([&] { return client.ended; }));
    CHECK(client.has("answer"));
  }

  TEST_CASE_FIXTURE(ServerTest, "and so do all its requests, and the half that ends them none") {
    HttpServer::Limits limits;
    limits.max_pipelined = 2;
    start(limits);
    Client& client = ask(get("/keep") + get("/") + get("/") + get("/") + "GET / HT");
    client.stream->finish_writing();
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    loop.run_until([] { return false; }, Milliseconds(20));
    kept[0]->reply(200, {}, "answer");
    REQUIRE(run_until([&] { return client.ended; }));
    CHECK(client.count("hello") == 3);
    CHECK(client.count("HTTP/1.1 ") == 4);
    CHECK(client.end_code == 0);
  }

  TEST_CASE_FIXTURE(ServerTest, "whoever answers learns that the client has gone") {
    bool gone = false;
    on("/stream", [&](auto exchange) {
      exchange->begin(200, {});
      exchange->set_callbacks({nullptr, [&] {
                                 gone = true;
                                 kept.clear();
                               }});
      kept.push_back(std::move(exchange));
    });
    Client& client = ask(get("/stream"));
    REQUIRE(run_until([&] { return client.has("200 OK"); }));
    client.stream.reset();
    REQUIRE(run_until([&] { return gone; }));
    CHECK(server->connections() == 0);
  }

  TEST_CASE_FIXTURE(ServerTest, "whoever answers learns that the server has gone") {
    bool gone = false;
    ask(get("/keep"));
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    kept[0]->set_callbacks({nullptr, [&] { gone = true; }});
    server.reset();
    CHECK_FALSE(gone);  // never inside a call
    REQUIRE(run_until([&] { return gone; }));
    kept[0]->reply(200, {}, "to nobody");
    CHECK(kept[0]->unsent() == 0);
  }

  TEST_CASE_FIXTURE(ServerTest, "a handler may drop the server") {
    on("/end", [&](auto exchange) {
      server.reset();
      exchange->reply(200, {}, "x");
    });
    Client& client = ask(get("/end"));
    REQUIRE(run_until([&] { return client.ended; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "a value cannot begin a header of its own") {
    on("/evil", [](auto exchange) {
      exchange->reply(200, {{"Location", "/\r\nSet-Cookie: a=b"}}, "");
    });
    Client& client = ask(get("/evil"));
    REQUIRE(run_until([&] { return client.has("\r\n\r\n"); }));
    CHECK_FALSE(client.has("\nSet-Cookie"));
  }
}

TEST_SUITE("http server limits") {
  TEST_CASE_FIXTURE(ServerTest, "only so many requests are read ahead") {
    HttpServer::Limits limits;
    limits.max_pipelined = 2;
    start(limits);
    std::string many = get("/keep");
    for (int i = 0; i < 5'000; ++i)
      many += kGet;
    Client& client = ask(many);
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    loop.run_until([] { return false; }, Milliseconds(50));
    CHECK(requests.size() == 1);
    kept[0]->reply(200, {}, "first");
    REQUIRE(run_until([&] { return client.count("hello") == 5'000; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "a request that takes too long to come gets 408") {
    HttpServer::Limits limits;
    limits.head_time = Milliseconds(50);
    start(limits);
    CHECK(ask_to_the_end("GET / HT").substr(0, 13) == "HTTP/1.1 408 ");
    const std::string got =
        ask_to_the_end("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    CHECK(got.substr(0, 13) == "HTTP/1.1 408 ");
  }

  TEST_CASE_FIXTURE(ServerTest, "one byte now and then does not make a slow request last") {
    HttpServer::Limits limits;
    limits.head_time = Milliseconds(60);
    start(limits);
    Client& client = ask("GET / HTTP/1.1\r\nX: ");
    auto drip = Timer::repeat(loop, Milliseconds(5), [&] { client.send("y"); });
    REQUIRE(run_until([&] { return client.ended; }));
    CHECK(client.got.substr(0, 13) == "HTTP/1.1 408 ");
  }

  TEST_CASE_FIXTURE(ServerTest, "a connection that asks nothing is closed") {
    HttpServer::Limits limits;
    limits.idle_time = Milliseconds(50);
    start(limits);
    CHECK(ask_to_the_end("") == "");
    CHECK(ask_to_the_end(kGet).find("hello") != std::string::npos);
    REQUIRE(run_until([&] { return server->connections() == 0; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "whoever answers may take longer than any limit of the client") {
    HttpServer::Limits limits;
    limits.idle_time = limits.head_time = limits.write_time = Milliseconds(10);
    start(limits);
    Client& client = ask(get("/keep"));
    loop.run_until([] { return false; }, Milliseconds(100));
    REQUIRE(kept.size() == 1);
    kept[0]->reply(200, {}, "late");
    REQUIRE(run_until([&] { return client.has("late"); }));
  }

  TEST_CASE_FIXTURE(ServerTest, "a client that takes nothing of its answer is cut off") {
    HttpServer::Limits limits;
    limits.write_time = Milliseconds(50);
    start(limits);
    bool gone = false;
    on("/much", [&](auto exchange) {
      exchange->begin(200, {});
      exchange->set_callbacks({nullptr, [&] { gone = true; }});
      exchange->write(std::string(8 << 20, 'x'));
      CHECK(exchange->unsent() > 0);
      kept.push_back(std::move(exchange));
    });
    Client& client = connect(4096);
    client.stream->set_reading(false);
    client.send(get("/much"));
    REQUIRE(run_until([&] { return gone; }));
    CHECK(kept[0]->unsent() == 0);
    CHECK(server->connections() == 0);
  }

  TEST_CASE_FIXTURE(ServerTest, "a client that reads slowly is told of when there is room") {
    int drained = 0;
    on("/much", [&](auto exchange) {
      exchange->begin(200, {});
      HttpExchange* raw = exchange.get();
      kept.push_back(std::move(exchange));
      auto more = [&, raw] {
        while (raw->unsent() == 0 && drained < 3)
          raw->write(std::string(4 << 20, 'x'));
        if (drained == 3) raw->finish();
      };
      raw->set_callbacks({[&, more] {
                            ++drained;
                            more();
                          },
                          nullptr});
      more();
    });
    Client& client = ask(get("/much") + get("/"));
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(drained == 3);
    CHECK(client.got.size() > 12 << 20);
  }

  TEST_CASE_FIXTURE(ServerTest, "beyond the most connections the longest idle one gives way") {
    HttpServer::Limits limits;
    limits.max_connections = 3;
    start(limits);
    Client& busy = ask(get("/keep"));
    Client& slow = ask("GET / HT");
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    Client& idle = ask(kGet);
    REQUIRE(run_until([&] { return idle.has("hello"); }));
    Client& next = ask(kGet);
    REQUIRE(run_until([&] { return idle.ended && next.has("hello"); }));
    CHECK_FALSE(slow.ended);
    CHECK_FALSE(busy.ended);
    CHECK(server->connections() == 3);
  }

  TEST_CASE_FIXTURE(ServerTest, "when all connections are in use a new one is turned away") {
    HttpServer::Limits limits;
    limits.max_connections = 2;
    start(limits);
    Client& slow = ask("GET / HT");
    ask(get("/keep"));
    REQUIRE(run_until([&] { return kept.size() == 1; }));
    ask(get("/keep"));  // for it a request that comes slowly gives way
    REQUIRE(run_until([&] { return kept.size() == 2 && slow.ended; }));
    Client& late = connect();
    REQUIRE(run_until([&] { return late.ended; }));
    CHECK(late.got.substr(0, 13) == "HTTP/1.1 503 ");
    kept[0]->reply(200, {}, "");
    Client& again = ask(kGet);
    REQUIRE(run_until([&] { return again.has("hello"); }));
  }

  TEST_CASE_FIXTURE(ServerTest, "all requests together are held within a bound") {
    HttpServer::Limits limits;
    limits.max_requests_held = 90'000;
    start(limits);
    const std::string half = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" +
                             std::string(50'000, 'x');
    Client& first = ask(half);
    loop.run_until([] { return false; }, Milliseconds(20));
    Client& second = ask(half);
    REQUIRE(run_until([&] { return second.ended; }));
    CHECK(second.got.substr(0, 13) == "HTTP/1.1 503 ");
    first.send(std::string(10'000, 'x'));
    REQUIRE(run_until([&] { return first.has("x>"); }));
    Client& third = ask(half + std::string(10'000, 'x'));
    REQUIRE(run_until([&] { return third.has("x>"); }));
  }

  TEST_CASE_FIXTURE(ServerTest, "all unread answers together are held within a bound") {
    HttpServer::Limits limits;
    limits.max_answers_held = size_t{52} << 20;
    start(limits);
    on("/much", [](auto exchange) { exchange->reply(200, {}, std::string(24 << 20, 'x')); });
    std::vector<Client*> readers;
    for (int i = 0; i < 3; ++i) {
      readers.push_back(&connect(4096));
      readers.back()->stream->set_reading(false);
      readers.back()->send(get("/much"));
      loop.run_until([] { return false; }, Milliseconds(20));
    }
    REQUIRE(run_until([&] { return server->connections() == 2; }));
    for (Client* reader : readers)
      reader->stream->set_reading(true);
    REQUIRE(run_until([&] { return readers[2]->got.size() > 24 << 20; }));
    REQUIRE(run_until([&] { return readers[0]->ended; }));  // it had waited longest
    CHECK(readers[0]->got.size() < 24 << 20);
    REQUIRE(run_until([&] { return readers[1]->got.size() > 24 << 20; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "a client that does not close after its last answer is closed") {
    HttpServer::Limits limits;
    limits.linger_time = Milliseconds(50);
    start(limits);
    Client& client = ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.stream->set_reading(false);
    REQUIRE(run_until([&] { return requests.size() == 1; }));
    REQUIRE(run_until([&] { return server->connections() == 0; }));
  }

  TEST_CASE_FIXTURE(ServerTest, "clients leave most descriptors to others") {
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit few = before;
    few.rlim_cur = 100;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    start({});
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    for (int i = 0; i < 30; ++i)
      connect();
    Client& client = ask(kGet);
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(server->connections() == 25);
  }

  TEST_CASE_FIXTURE(ServerTest, "a thousand idle connections are in nobody's way") {
    raise_fd_limit();
    start({});
    for (int i = 0; i < 1'000; ++i)
      connect();
    Client& client = ask(kGet);
    REQUIRE(run_until([&] { return client.has("hello"); }));
    CHECK(server->connections() == 1'001);
  }
}

}  // namespace muster
