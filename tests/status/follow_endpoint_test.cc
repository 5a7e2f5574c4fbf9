// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "status/server_fixture.h"
#include "supervisor/status/follow_session.h"
#include "supervisor/status/remote_follow.h"

namespace muster {

namespace {

using Json = nlohmann::json;

std::string numbered(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i)
    text += "line " + std::to_string(i) + "\n";
  return text;
}

// What a reader has of each log, put together as the page does it: "0/stdout" -> text. Every line
// must begin where the one before ended.
struct Read {
  std::map<std::string, std::string> text;
  std::map<std::string, int64_t> end;
  std::map<std::string, std::string> open;
  std::string cursor;
  size_t taken = 0;

  static std::string key(const Json& data) {
    return data["rank"].dump() + "/" + data["stream"].get<std::string>();
  }
  void take(const Streamed& stream) {
    for (; taken < stream.messages.size(); ++taken) {
      const Told& told = stream.messages[taken];
      if (told.event != "lines" && told.event != "open") continue;
      const std::string log = key(told.data);
      open[log].clear();
      if (told.event == "open") {
        open[log] = told.data["lines"][0][5];
        continue;
      }
      for (const Json& line : told.data["lines"]) {
        if (end.contains(log)) REQUIRE(line[0] == end[log]);
        text[log] += line[5].get<std::string>() + "\n";
        end[log] = line[0].get<int64_t>() + line[3].get<int64_t>() + 1;
      }
      REQUIRE(told.id != "");
      cursor = told.id;
    }
  }
};

struct FollowTest : ServerTest {
  FollowTest() {
    job.dir = folder.path();
    job.story.start(2).start_attempt(2);
  }
  std::string path(int rank, const std::string& stream = "stdout") const {
    return folder.path() + "/attempt_0/" + std::to_string(rank) + "/" + stream + ".log";
  }
  void append(int rank, const std::string& text, const std::string& stream = "stdout") const {
    std::filesystem::create_directories(std::filesystem::path(path(rank)).parent_path());
    std::ofstream(path(rank, stream), std::ios::binary | std::ios::app) << text;
  }
  void wait_for(Read& read, const Streamed& stream, const std::string& log,
                const std::string& text) {
    REQUIRE(run_until([&] {
      read.take(stream);
      return read.text[log] == text;
    }));
  }
  void end_job() {
    job.story.exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
    job.tell();
  }
};

}  // namespace

TEST_CASE_FIXTURE(FollowTest, "first the last lines, then what is appended, of every log") {
  append(0, numbered(0, 1000));
  append(1, "one\n", "stderr");
  start();
  Streamed& stream = this->stream("/api/v1/follow?tail=2");
  REQUIRE(run_until([&] { return stream.count("lines") == 4; }));
  CHECK(stream.status == 200);
  Read read;
  read.take(stream);
  CHECK(read.text["0/stdout"] == "line 998\nline 999\n");
  CHECK(read.text["1/stderr"] == "one\n");
  CHECK(stream.messages[1].data["exists"] == false);
  append(0, "more\n");
  append(1, "first of a new log\n");
  wait_for(read, stream, "0/stdout", "line 998\nline 999\nmore\n");
  wait_for(read, stream, "1/stdout", "first of a new log\n");
}

TEST_CASE_FIXTURE(FollowTest, "a line that is not whole is told as such until it is") {
  append(0, "half");
  start();
  Streamed& stream = this->stream("/api/v1/follow?ranks=0&streams=stdout");
  Read read;
  auto open_is = [&](const std::string& text) {
    return run_until([&] {
      read.take(stream);
      return read.open["0/stdout"] == text;
    });
  };
  REQUIRE(open_is("half"));
  CHECK(stream.last("open")->id == "");
  CHECK(read.text["0/stdout"] == "");
  append(0, " a line");
  REQUIRE(open_is("half a line"));
  append(0, "\nnext\n");
  wait_for(read, stream, "0/stdout", "half a line\nnext\n");
  CHECK(read.open["0/stdout"] == "");
}

TEST_CASE_FIXTURE(FollowTest, "a reader that is cut off again and again has every line once") {
  append(0, numbered(0, 50));
  start();
  Read read;
  std::string expected = numbered(0, 50);
  int line = 50;
  for (int round = 0; round < 12; ++round) {
    HttpHeaders headers;
    std::string target = "/api/v1/follow?streams=stdout";
    if (round % 2 == 0 && !read.cursor.empty()) headers.emplace_back("Last-Event-ID", read.cursor);
    if (round % 2 == 1) target += "&cursor=" + read.cursor;
    Streamed& stream = this->stream(target, headers);
    read.taken = 0;
    const std::string text = numbered(line, line + 40);
    append(0, text);
    expected += text;
    line += 40;
    // Cut off somewhere in the middle, with lines that were sent and not read.
    const size_t enough = round == 11 ? expected.size() : expected.size() - 200;
    REQUIRE(run_until([&] {
      read.take(stream);
      return read.text["0/stdout"].size() >= enough;
    }));
    const std::string more = numbered(line, line + 40);
    if (round < 11) {
      append(0, more);
      expected += more;
      line += 40;
    }
    stream.call.reset();
  }
  CHECK(read.text["0/stdout"] == expected);
}

TEST_CASE_FIXTURE(FollowTest, "a client without an attempt goes on with the one it began with") {
  append(0, "old\n");
  start();
  Streamed& stream = this->stream("/api/v1/follow?ranks=0&streams=stdout");
  Read read;
  wait_for(read, stream, "0/stdout", "old\n");
  stream.call.reset();
  job.story.exits(0, 0).exits(1, 9).say(event::RestartScheduled{1, 1, 1, true}).start_attempt(2);
  append(0, "last\n");
  Streamed& again = this->stream("/api/v1/follow?ranks=0&streams=stdout&cursor=" + read.cursor);
  read.taken = 0;
  wait_for(read, again, "0/stdout", "old\nlast\n");
}

TEST_CASE_FIXTURE(FollowTest, "the end is told when every worker has ended and all was sent") {
  append(0, "one\n");
  append(1, "no newline");
  start();
  Streamed& stream = this->stream("/api/v1/follow?streams=stdout");
  Read read;
  wait_for(read, stream, "0/stdout", "one\n");
  append(0, "two\n");
  end_job();
  REQUIRE(run_until([&] { return stream.ended; }));
  read.take(stream);
  CHECK(read.text["0/stdout"] == "one\ntwo\n");
  CHECK(read.open["1/stdout"] == "no newline");
  CHECK(stream.count("ended") == 2);
  CHECK(stream.messages.back().event == "end");
}

TEST_CASE_FIXTURE(FollowTest, "a reader that is too slow is told what it missed") {
  append(0, "first\n");
  start();
  Streamed& stream = this->stream("/api/v1/follow?ranks=0&streams=stdout");
  Read read;
  wait_for(read, stream, "0/stdout", "first\n");
  stream.call.reset();
  // 8 MB while nobody reads, of which a follower has to pass over some.
  std::string text;
  for (int i = 0; i < 80'000; ++i)
    text += std::string(99, static_cast<char>('a' + i % 26)) + "\n";
  append(0, text);
  append(0, "last\n");
  Streamed& again = this->stream("/api/v1/follow?ranks=0&streams=stdout&cursor=" + read.cursor);
  REQUIRE(run_until([&] {
    const Told* lines = again.last("lines");
    return lines != nullptr && lines->data["end"] == static_cast<int64_t>(text.size()) + 11;
  }));
  REQUIRE(again.count("skip") == 1);
  const Told& skip = *again.last("skip");
  CHECK(skip.data["from"] == 6);
  CHECK(skip.data["rank"] == 0);
  CHECK(skip.data["to"] > 1'000'000);
  CHECK(again.messages[1].event == "lines");
  CHECK(again.messages[1].data["offset"] == skip.data["to"]);
}

TEST_CASE_FIXTURE(FollowTest, "a client that does not read holds up neither memory nor others") {
  start();
  UniqueFd stalled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int small = 4096;
  ::setsockopt(stalled.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  auto address = SocketAddress::parse("127.0.0.1", port());
  REQUIRE(::connect(stalled.get(), address->raw(), address->size()) == 0);
  const std::string request = "GET /api/v1/follow HTTP/1.1\r\nHost: localhost\r\n\r\n";
  REQUIRE(::send(stalled.get(), request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  Streamed& stream = this->stream("/api/v1/follow?ranks=0&streams=stdout");
  REQUIRE(run_until([&] { return stream.count("lines") == 1; }));
  // More than the kernel keeps for a connection and than a follower may be behind.
  int64_t size = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int line = 0; line < 50; ++line)
      text += std::string(999, static_cast<char>('a' + i % 26)) + "\n";
    append(0, text);
    size += static_cast<int64_t>(text.size());
    REQUIRE(run_until([&] { return stream.last("lines")->data["end"] == size; }));
  }
  CHECK(stream.count("skip") == 0);
  append(0, "the last line\n");
  std::string got;
  const int fd = stalled.get();
  REQUIRE(run_until([&] {
    char buffer[65536];
    ssize_t count = 0;
    while ((count = ::recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
      got.append(buffer, static_cast<size_t>(count));
    return got.find("the last line") != std::string::npos;
  }));
  CHECK(got.find("event: skip") != std::string::npos);
}

TEST_CASE_FIXTURE(FollowTest, "when the server is to go, whoever watches gets the rest first") {
  append(0, "one\n");
  start();
  Streamed& log = this->stream("/api/v1/follow?streams=stdout");
  Streamed& events = this->stream("/api/v1/events?stream=1");
  Read read;
  wait_for(read, log, "0/stdout", "one\n");
  REQUIRE(run_until([&] { return events.count("state") == 1; }));
  append(0, "two\n");
  append(1, "three\n");
  end_job();
  bool finished = false;
  server->finish([&] {
    finished = true;
    server.reset();
  });
  CHECK_FALSE(finished);
  REQUIRE(run_until([&] { return finished && log.ended && events.ended; }));
  read.take(log);
  CHECK(read.text["0/stdout"] == "one\ntwo\n");
  CHECK(read.text["1/stdout"] == "three\n");
  CHECK(log.messages.back().event == "end");
  CHECK(events.last("change")->data["job"]["outcome"] == "succeeded");
  CHECK_FALSE(events.broken);
  CHECK_FALSE(log.broken);
}

TEST_CASE_FIXTURE(FollowTest,
                  "a server that nobody watches goes at once, others wait for a bound") {
  append(0, "one\n");
  start();
  bool finished = false;
  server->finish([&] { finished = true; });
  REQUIRE(run_until([&] { return finished; }, Milliseconds(1'000)));
  // Its worker never ends, so neither does the stream.
  Streamed& log = this->stream("/api/v1/follow?streams=stdout");
  Read read;
  wait_for(read, log, "0/stdout", "one\n");
  finished = false;
  server->finish([&] {
    finished = true;
    server.reset();
  });
  REQUIRE(run_until([&] { return finished; }));
  REQUIRE(run_until([&] { return log.ended; }));
}

TEST_CASE_FIXTURE(FollowTest, "what is asked wrongly is told what would be right") {
  start();
  for (const char* query : {"tail=x", "tail=1&time=1", "ranks=x", "streams=x", "attempt=x"}) {
    CAPTURE(std::string(query));
    CHECK(get("/api/v1/follow?" + std::string(query)).status == 400);
  }
  CHECK(get("/api/v1/follow?attempt=9").status == 404);
  CHECK(get("/api/v1/follow?ranks=9").status == 404);
}

TEST_CASE_FIXTURE(ServerTest, "too many logs for one stream are refused with what to do") {
  job.dir = folder.path();
  job.story.start(300).start_attempt(300);
  start();
  const HttpResponse answer = get("/api/v1/follow");
  CHECK(answer.status == 400);
  CHECK(answer.body.find("choose at most 512") != std::string::npos);
}

TEST_CASE_FIXTURE(FollowTest, "too many streams are refused until one goes") {
  append(0, "x\n");
  start();
  for (size_t i = 0; i < FollowSession::kMaxSessions; ++i) {
    Streamed& one = this->stream("/api/v1/follow?ranks=0&streams=stdout");
    REQUIRE(run_until([&] { return one.count("lines") == 1; }));
  }
  CHECK(get("/api/v1/follow?ranks=0&streams=stdout").status == 503);
  streams.front().call.reset();
  bool open = false;
  for (int i = 0; i < 100 && !open; ++i) {
    Streamed& again = this->stream("/api/v1/follow?ranks=0&streams=stdout");
    REQUIRE(run_until([&] { return again.status != 0; }));
    open = again.status == 200;
  }
  CHECK(open);
}

TEST_CASE_FIXTURE(ServerTest, "before anything runs there is nothing to follow") {
  job.dir = folder.path();
  start();
  CHECK(get("/api/v1/follow").status == 404);
}

// Two musters of one job: `job` is the coordinator's, `other` has the second node's ranks and its
// own folder. What is forwarded is answered by the other's server.
struct TwoNodesTest : FollowTest {
  TestFolder other_folder;
  StoryJob other;
  std::unique_ptr<StatusServer> other_server;
  bool connected = true;
  std::vector<std::unique_ptr<HttpExchange>> kept;

  TwoNodesTest() {
    for (StoryJob* one : {&job, static_cast<StoryJob*>(&other)}) {
      one->story = {};
      one->story.start(1);
      event::AttemptStarted started;
      started.world_size = 2;
      started.node_count = 2;
      const event::NodeSpan a{0, "node-a", 0, 1};
      const event::NodeSpan b{1, "node-b", 1, 1};
      started.node = one == &other ? 1 : 0;
      started.nodes =
          one == &other ? std::vector<event::NodeSpan>{b} : std::vector<event::NodeSpan>{a, b};
      one->story.say(started);
      if (one == &job) one->story.say(event::WorkerSpawned{0, 0, 0, 10});
      one->story.say(event::WorkerSpawned{0, 1, 0, 11});
    }
    other.dir = other_folder.path();
    job.on_forward = [this](int attempt, int node, std::unique_ptr<HttpExchange>& exchange) {
      CHECK(attempt == 0);
      if (node != 1 || !connected) return false;
      other_server->handle_forwarded(std::move(exchange));
      return true;
    };
  }
  void start_both() {
    auto started = StatusServer::start(loop, {}, other);
    REQUIRE(started);
    other_server = std::move(*started);
    start();
  }
  void append_there(const std::string& text) const {
    other_folder.write("attempt_0/0/other", "");
    std::ofstream(other_folder.path() + "/attempt_0/0/stdout.log", std::ios::binary | std::ios::app)
        << text;
  }
};

TEST_CASE_FIXTURE(TwoNodesTest, "logs of two nodes come in one stream that can be taken up again") {
  append(0, "here\n");
  append_there("there\n");
  start_both();
  Streamed& stream = this->stream("/api/v1/follow?streams=stdout");
  Read read;
  wait_for(read, stream, "0/stdout", "here\n");
  wait_for(read, stream, "1/stdout", "there\n");
  append_there("more\n");
  wait_for(read, stream, "1/stdout", "there\nmore\n");
  append(0, "also\n");
  wait_for(read, stream, "0/stdout", "here\nalso\n");
  stream.call.reset();

  append(0, "1\n");
  append_there("2\n");
  Streamed& again = this->stream("/api/v1/follow?streams=stdout&cursor=" + read.cursor);
  read.taken = 0;
  wait_for(read, again, "0/stdout", "here\nalso\n1\n");
  wait_for(read, again, "1/stdout", "there\nmore\n2\n");
}

TEST_CASE_FIXTURE(TwoNodesTest,
                  "a node that goes away is told, and asked again from where it was") {
  append_there("one\n");
  start_both();
  Streamed& stream = this->stream("/api/v1/follow?streams=stdout");
  Read read;
  wait_for(read, stream, "1/stdout", "one\n");
  connected = false;
  other_server.reset();
  REQUIRE(run_until([&] { return stream.count("away") == 1; }));
  CHECK(stream.last("away")->data["host"] == "node-b");
  CHECK(stream.last("away")->data["ranks"] == "1");
  append_there("two\n");
  auto started = StatusServer::start(loop, {}, other);
  REQUIRE(started);
  other_server = std::move(*started);
  connected = true;
  wait_for(read, stream, "1/stdout", "one\ntwo\n");
}

TEST_CASE_FIXTURE(TwoNodesTest, "the end comes when all nodes have told theirs") {
  append(0, "here\n");
  append_there("there\n");
  start_both();
  Streamed& stream = this->stream("/api/v1/follow?streams=stdout");
  job.story.exits(0, 0).say(event::WorkerExited{0, 1, 0, 11, 0, 0}).ends(Outcome::kSucceeded, 0);
  REQUIRE(run_until([&] { return stream.count("ended") == 1; }));
  CHECK_FALSE(stream.ended);
  other.story.say(event::WorkerExited{0, 1, 0, 11, 0, 0}).ends(Outcome::kSucceeded, 0);
  REQUIRE(run_until([&] { return stream.ended; }));
  CHECK(stream.count("ended") == 2);
  CHECK(stream.count("end") == 1);
}

TEST_CASE_FIXTURE(TwoNodesTest, "what was forwarded is not forwarded again, nor is a change") {
  start_both();
  other.on_forward = [](int, int, std::unique_ptr<HttpExchange>&) {
    FAIL("a forwarded request was passed on");
    return false;
  };
  CHECK(get("/api/v1/logs/0/1/stdout").status == 200);
  struct Post final : HttpExchange {
    HttpServerRequest asked;
    int& status;
    explicit Post(int& to) : status(to) {
      asked.method = "POST";
      asked.path = "/api/v1/stop";
    }
    const HttpServerRequest& request() const override { return asked; }
    void set_callbacks(Callbacks) override {}
    void reply(int with, HttpHeaders, std::string) override { status = with; }
    void begin(int, HttpHeaders, int64_t) override {}
    void write(std::string_view) override {}
    void finish() override {}
    size_t unsent() const override { return 0; }
  };
  int status = 0;
  other_server->handle_forwarded(std::make_unique<Post>(status));
  CHECK(status == 403);
  CHECK(other.asked.empty());
}

}  // namespace muster
