// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_endpoint.h"

#include <sys/socket.h>

#include "status/server_fixture.h"
#include "supervisor/logs/log_file.h"
#include "supervisor/logs/times_format.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// A job of one attempt with logs on this machine.
struct LogTest : ServerTest {
  LogTest() {
    job.story.start(2).start_attempt(2);
    job.dir = folder.path();
  }
  std::string path(int rank) const {
    return folder.path() + "/attempt_0/" + std::to_string(rank) + "/stdout.log";
  }
  void write(const std::string& text, int rank = 0) {
    folder.write("attempt_0/" + std::to_string(rank) + "/stdout.log", text);
  }

  // The whole answer to a request that the test client cannot send.
  std::string raw(const std::string& request) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto address = SocketAddress::parse("127.0.0.1", port());
    REQUIRE(::connect(fd.get(), address->raw(), address->size()) == 0);
    REQUIRE(::send(fd.get(), request.data(), request.size(), 0) ==
            static_cast<ssize_t>(request.size()));
    std::string got;
    REQUIRE(run_until([&] {
      char buffer[65536];
      ssize_t size = 0;
      while ((size = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
        got.append(buffer, static_cast<size_t>(size));
      return size == 0;
    }));
    return got;
  }
};

std::string numbered(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += "line " + std::to_string(i) + "\n";
  return text;
}

std::string texts(const Json& page) {
  std::string all;
  for (const Json& line : page["lines"])
    all += line[5].get<std::string>() + "|";
  return all;
}

}  // namespace

TEST_CASE_FIXTURE(LogTest, "without parameters it is the bytes as they are") {
  const std::string text = numbered(100'000) + std::string("\x1b[31m\0\xff no newline", 18);
  write(text);
  start();
  const HttpResponse answer = get("/api/v1/logs/0/0/stdout");
  CHECK(answer.status == 200);
  CHECK(answer.body == text);
  CHECK(answer.header("accept-ranges") == "bytes");
  // Its worker may write on: what has come so far has no length that would stay true.
  CHECK(answer.header("content-length") == "");
  job.story.exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
  CHECK(get("/api/v1/logs/0/0/stdout").header("content-length") == std::to_string(text.size()));
}

TEST_CASE_FIXTURE(LogTest, "a part of the bytes is had by Range") {
  const std::string text = numbered(1000);
  write(text);
  start();
  const auto size = std::to_string(text.size());
  HttpResponse answer = get("/api/v1/logs/0/0/stdout", {{"Range", "bytes=10-19"}});
  CHECK(answer.status == 206);
  CHECK(answer.body == text.substr(10, 10));
  CHECK(answer.header("content-range") == "bytes 10-19/" + size);
  CHECK(answer.header("content-length") == "10");
  answer = get("/api/v1/logs/0/0/stdout", {{"Range", "bytes=-7"}});
  CHECK(answer.body == text.substr(text.size() - 7));
  answer = get("/api/v1/logs/0/0/stdout", {{"Range", "bytes=5-"}});
  CHECK(answer.body == text.substr(5));
  answer = get("/api/v1/logs/0/0/stdout", {{"Range", "bytes=" + size + "-"}});
  CHECK(answer.status == 416);
  CHECK(answer.header("content-range") == "bytes */" + size);
}

TEST_CASE_FIXTURE(LogTest, "HEAD tells the size and sends nothing") {
  const std::string text = numbered(1000);
  write(text);
  job.story.exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
  start();
  const std::string answer =
      raw("HEAD /api/v1/logs/0/0/stdout HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(answer.find("HTTP/1.1 200") == 0);
  CHECK(answer.find("Content-Length: " + std::to_string(text.size())) != std::string::npos);
  CHECK(answer.find("line 0") == std::string::npos);
}

TEST_CASE_FIXTURE(LogTest, "a download has a name that says what it is") {
  write("x\n");
  start();
  CHECK(get("/api/v1/logs/0/0/stdout?download=1").header("content-disposition") ==
        "attachment; filename=\"4f1c_attempt_0_rank_0_stdout.log\"");
  CHECK(get("/api/v1/logs/0/0/stdout").header("content-disposition") == "");
}

TEST_CASE_FIXTURE(LogTest, "of a bounded log what is left out is told, and is in no part") {
  folder.write("attempt_0/0/other", "");
  const std::shared_ptr<LogFile> file = LogFile::create_later(path(0), LogFile::kMinLimit);
  file->keep_times(times_path(path(0)));
  const std::string text = numbered(40'000);
  for (size_t at = 0; at < text.size(); at += 1000)
    file->append(std::string_view(text).substr(at, 1000));
  file->finish();
  start();
  const Json page = json("/api/v1/logs/0/0/stdout?tail=1");
  CHECK(page["size"] == text.size());
  const auto begin = page["hole"][0].get<size_t>();
  const auto end = page["hole"][1].get<size_t>();
  REQUIRE(begin < end);
  const HttpResponse whole = get("/api/v1/logs/0/0/stdout");
  CHECK(whole.status == 200);
  CHECK(whole.body == text.substr(0, begin) + "[muster: " + std::to_string(end - begin) +
                          " bytes are left out here]\n" + text.substr(end));
  auto range = [&](size_t first, size_t last) {
    return get("/api/v1/logs/0/0/stdout",
               {{"Range", "bytes=" + std::to_string(first) + "-" + std::to_string(last)}});
  };
  CHECK(range(end, end + 9).body == text.substr(end, 10));
  CHECK(range(begin - 5, end + 5).body == text.substr(begin - 5, 5));
  CHECK(range(begin - 5, end + 5).status == 206);
  CHECK(range(begin, end + 5).status == 416);
  const HttpResponse suffix = get("/api/v1/logs/0/0/stdout",
                                  {{"Range", "bytes=-" + std::to_string(text.size() - begin - 1)}});
  CHECK(suffix.status == 206);
  CHECK(suffix.body == text.substr(end));
}

TEST_CASE_FIXTURE(LogTest, "pages are had by offset, line, tail and from before an offset") {
  write(numbered(1000) + "open");
  start();
  Json page = json("/api/v1/logs/0/0/stdout?offset=0&lines=2");
  CHECK(texts(page) == "line 0|line 1|");
  CHECK(page["attempt"] == 0);
  CHECK(page["rank"] == 0);
  CHECK(page["stream"] == "stdout");
  CHECK(page["exists"] == true);
  CHECK(page["growing"] == true);
  CHECK(page["end"] == 14);
  CHECK(page["hole"].is_null());
  CHECK(page["lines"][1] == Json::array({7, 1, 0, 6, true, "line 1"}));
  CHECK(texts(json("/api/v1/logs/0/0/stdout?line=998")) == "line 998|line 999|open|");
  page = json("/api/v1/logs/0/0/stdout?tail=2");
  CHECK(texts(page) == "line 999|open|");
  CHECK(page["lines"][1][4] == false);
  CHECK(texts(json("/api/v1/logs/0/0/stdout?before=14&lines=1")) == "line 1|");
  CHECK(texts(json("/api/v1/logs/0/0/stdout?before=0&lines=5")) == "");
  CHECK(texts(json("/api/v1/logs/0/0/stdout?line=3&lines=1&max_line=4")) == "line|");
}

TEST_CASE_FIXTURE(LogTest, "a page never has more lines than the limit") {
  write(numbered(9'000));
  start();
  CHECK(json("/api/v1/logs/0/0/stdout?tail=9000&lines=9000")["lines"].size() == 5'000);
  CHECK(json("/api/v1/logs/0/0/stdout?offset=0")["lines"].size() == 200);
}

TEST_CASE_FIXTURE(LogTest, "a page tells whether its worker may still write") {
  write("x\n");
  write("x\n", 1);
  job.story.exits(0, 0);
  start();
  CHECK(json("/api/v1/logs/0/1/stdout?tail=1")["growing"] == true);
  job.story.exits(1, 0).ends(Outcome::kSucceeded, 0);
  CHECK(json("/api/v1/logs/0/1/stdout?tail=1")["growing"] == false);
}

TEST_CASE_FIXTURE(LogTest, "a stream to which nothing was written is empty") {
  start();
  CHECK(get("/api/v1/logs/0/1/stderr").status == 200);
  CHECK(get("/api/v1/logs/0/1/stderr").body == "");
  const Json page = json("/api/v1/logs/0/1/stderr?tail=5");
  CHECK(page["exists"] == false);
  CHECK(page["lines"].empty());
}

TEST_CASE_FIXTURE(LogTest, "what is asked wrongly is told what would be right") {
  write("x\n");
  start();
  for (const char* target : {"/api/v1/logs/0/7/stdout", "/api/v1/logs/1/0/stdout",
                             "/api/v1/logs/0/0/stdin", "/api/v1/logs/x/0/stdout",
                             "/api/v1/logs/0/-1/stdout", "/api/v1/logs/99999999999999/0/stdout"}) {
    CAPTURE(std::string(target));
    CHECK(get(target).status == 404);
  }
  for (const char* query :
       {"tail=x", "offset=-1", "line=1&tail=2", "tail=1&lines=x", "offset=1&max_line=", "time="}) {
    CAPTURE(std::string(query));
    CHECK(get("/api/v1/logs/0/0/stdout?" + std::string(query)).status == 400);
  }
  const HttpResponse untimed = get("/api/v1/logs/0/0/stdout?time=5");
  CHECK(untimed.status == 409);
}

TEST_CASE_FIXTURE(LogTest, "a run without log files says so") {
  job.dir = "";
  start();
  const HttpResponse answer = get("/api/v1/logs/0/0/stdout");
  CHECK(answer.status == 404);
  CHECK(answer.body.find("keeps no log files") != std::string::npos);
}

TEST_CASE_FIXTURE(ServerTest,
                  "the log of another node is asked of that node, or told where it is") {
  job.dir = folder.path();
  job.story.start(1);
  event::NodeJoined joined;
  joined.id = "n1";
  joined.host = "node-b";
  joined.log_dir = "/runs/b";
  job.story.say(joined);
  event::AttemptStarted started;
  started.world_size = 2;
  started.node_count = 2;
  started.nodes = {{0, "node-a", 0, 1}, {1, "node-b", 1, 1, "n1"}};
  job.story.say(started);
  start();
  std::string asked;
  job.on_forward = [&](int attempt, int node, std::unique_ptr<HttpExchange>& exchange) {
    asked = std::to_string(attempt) + " " + std::to_string(node) + " " + exchange->request().target;
    exchange->reply(200, {{"Content-Type", "text/plain"}}, "from there");
    exchange.reset();
    return true;
  };
  const HttpResponse there = get("/api/v1/logs/0/1/stdout?tail=3");
  CHECK(asked == "0 1 /api/v1/logs/0/1/stdout?tail=3");
  CHECK(there.body == "from there");
  CHECK(there.header("x-content-type-options") == "nosniff");

  job.on_forward = nullptr;
  CHECK(get("/api/v1/logs/0/1/stdout").status == 502);
  job.is_live = false;
  const HttpResponse gone = get("/api/v1/logs/0/1/stdout");
  CHECK(gone.status == 404);
  CHECK(gone.body.find("node-b:/runs/b/attempt_0/0/stdout.log") != std::string::npos);
}

}  // namespace muster
