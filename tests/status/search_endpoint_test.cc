// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/search_endpoint.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "status/server_fixture.h"
#include "supervisor/status/search_session.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// Two musters of one job: `job` is the coordinator's, with rank 0, `other` has rank 1 and its own
// folder. What is forwarded is answered by the other's server.
struct TwoNodesTest : ServerTest {
  TestFolder other_folder;
  StoryJob other;
  std::unique_ptr<StatusServer> other_server;
  bool connected = true;
  std::vector<std::string> forwarded;

  TwoNodesTest() {
    for (StoryJob* one : {&job, &other}) {
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
    job.dir = folder.path();
    other.dir = other_folder.path();
    job.on_forward = [this](int attempt, int node, std::unique_ptr<HttpExchange>& exchange) {
      CHECK(attempt == 0);
      if (node != 1 || !connected) return false;
      forwarded.push_back(exchange->request().target);
      if (other_server) other_server->handle_forwarded(std::move(exchange));
      exchange.reset();
      return true;
    };
    auto started = StatusServer::start(loop, {}, other);
    REQUIRE(started);
    other_server = std::move(*started);
    start();
  }

  void write(const std::string& text) { folder.write("attempt_0/0/stdout.log", text); }
  void write_there(const std::string& text) { other_folder.write("attempt_0/0/stdout.log", text); }

  struct Found {
    int status = 0;
    std::vector<Json> hits;
    Json done;
  };
  Found search(const std::string& query) {
    const HttpResponse answer = get("/api/v1/search?" + query);
    Found found;
    found.status = answer.status;
    std::istringstream lines(answer.body);
    for (std::string line; std::getline(lines, line);) {
      if (answer.status != 200) break;
      const Json told = Json::parse(line);
      CHECK(found.done.is_null());  // it is the last
      if (told.contains("hit")) found.hits.push_back(told["hit"]);
      if (told.contains("done")) found.done = told["done"];
    }
    return found;
  }
};

}  // namespace

TEST_SUITE("search endpoint") {
  TEST_CASE_FIXTURE(TwoNodesTest, "a hit says where it is, with the lines around it") {
    write("one\ntwo <b>\nthree\n");
    const Found found = search("q=TWO%20%3C&context=1");
    REQUIRE(found.hits.size() == 1);
    const Json& hit = found.hits[0];
    CHECK(hit["attempt"] == 0);
    CHECK(hit["rank"] == 0);
    CHECK(hit["stream"] == "stdout");
    CHECK(hit["offset"] == 4);
    CHECK(hit["number"] == 1);
    CHECK(hit["size"] == 7);
    CHECK(hit["text"] == "two <b>");
    CHECK(hit["matches"] == Json::parse("[[0, 5]]"));
    CHECK(hit["before"] == Json::parse(R"([[0, 0, 0, 3, true, "one"]])"));
    CHECK(hit["after"] == Json::parse(R"([[12, 2, 0, 5, true, "three"]])"));
    CHECK(found.done["hits"] == 1);
    CHECK(found.done["truncated"] == false);
    CHECK(found.done["bytes"] == 18);
    CHECK_FALSE(found.done.contains("unreachable"));
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "all nodes are searched, with the same question") {
    write("a+b here\nab\n");
    write_there("A+B there\na+b there\n");
    const Found found = search("q=a%2Bb&case=1");
    REQUIRE(found.hits.size() == 2);
    CHECK(found.hits[0]["text"].get<std::string>() + found.hits[1]["text"].get<std::string>() ==
          (found.hits[0]["rank"] == 0 ? "a+b herea+b there" : "a+b therea+b here"));
    CHECK(found.done["bytes"] == 12 + 20);
    CHECK(search("q=^a.b&regex=1").hits.size() == 3);
    CHECK(search("q=a&ranks=1").hits.size() == 2);
    const size_t asked = forwarded.size();
    CHECK(search("q=a&ranks=0").hits.size() == 2);
    CHECK(forwarded.size() == asked);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "a node that cannot be asked is named") {
    write("hit\n");
    write_there("hit\n");
    connected = false;
    const Found away = search("q=hit");
    CHECK(away.hits.size() == 1);
    CHECK(away.done["unreachable"] == Json::parse(R"(["node-b"])"));
    connected = true;
    other_server.reset();
    CHECK(search("q=hit").done["unreachable"] == Json::parse(R"(["node-b"])"));
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "the limit is that of all nodes together") {
    std::string much;
    for (int i = 0; i < 100; ++i)
      much += "hit\n";
    write(much);
    write_there(much);
    const Found found = search("q=hit&limit=120");
    CHECK(found.hits.size() == 120);
    CHECK(found.done["hits"] == 120);
    CHECK(found.done["truncated"] == true);
    CHECK(search("q=hit&limit=0").hits.size() == 1);
    CHECK(search("q=hit&limit=1000").hits.size() == 200);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "a part of one log can be searched, here and there") {
    write("hit\nhit\nhit\n");
    write_there("hit\nhit\nhit\n");
    for (const char* rank : {"0", "1"}) {
      const Found found =
          search("q=hit&from=4&to=8&attempt=0&streams=stdout&ranks=" + std::string(rank));
      REQUIRE(found.hits.size() == 1);
      CHECK(found.hits[0]["offset"] == 4);
    }
    CHECK(search("q=hit&from=4").status == 400);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "what cannot be searched for is refused, and why") {
    CHECK(get("/api/v1/search").status == 400);
    CHECK(get("/api/v1/search?q=").status == 400);
    const HttpResponse answer = get("/api/v1/search?q=a(b&regex=1");
    CHECK(answer.status == 400);
    CHECK(answer.body.find("missing )") != std::string::npos);
    CHECK(get("/api/v1/search?q=a&context=x").status == 400);
    CHECK(get("/api/v1/search?q=a&limit=-1").status == 400);
    CHECK(get("/api/v1/search?q=a&ranks=x").status == 400);
    CHECK(get("/api/v1/search?q=" + std::string(SearchPattern::kMaxLength + 1, 'x')).status == 400);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "texts come as data, whatever bytes they have") {
    write("hit \x1b[31m\xFF\x01</script>\"\\\n");
    const Found found = search("q=hit");
    REQUIRE(found.hits.size() == 1);
    CHECK(found.hits[0]["text"] == "hit \x1b[31m\xEF\xBF\xBD\x01</script>\"\\");
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "it goes on only as fast as its client reads") {
    std::string much;
    for (int i = 0; i < 20'000; ++i)
      much += "hit " + std::string(3'000, 'x') + "\n";
    write(much);
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int small = 4096;
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    auto address = SocketAddress::parse("127.0.0.1", port());
    REQUIRE(::connect(fd.get(), address->raw(), address->size()) == 0);
    const std::string request = "GET /api/v1/search?q=hit&limit=20000&token=" + token +
                                " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token +
                                "\r\n\r\n";
    REQUIRE(::send(fd.get(), request.data(), request.size(), 0) > 0);
    int64_t got = 0;
    auto read_some = [&] {
      char buffer[65536];
      ssize_t size = 0;
      while ((size = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
        got += size;
    };
    // The kernel holds some MB; what is found is 60, more than the server would keep for anybody.
    loop.run_until([] { return false; }, Milliseconds(1'000));
    REQUIRE(run_until([&] {
      read_some();
      return got > 20'000 * 3'000;
    }));
  }
}

TEST_SUITE("download endpoint") {
  TEST_CASE_FIXTURE(TwoNodesTest, "the logs of all nodes are one archive") {
    write("here\n");
    std::string much;
    for (int i = 0; i < 200'000; ++i)
      much += "line " + std::to_string(i) + "\n";
    write_there(much);
    const HttpResponse answer = get("/api/v1/download");
    CHECK(answer.status == 200);
    CHECK(answer.header("content-type") == "application/gzip");
    CHECK(answer.header("content-disposition") == "attachment; filename=\"4f1c.tar.gz\"");
    folder.write("all.tar.gz", answer.body);
    folder.write("out/here", "");
    const std::string unpack =
        "tar -xzf " + folder.path() + "/all.tar.gz -C " + folder.path() + "/out";
    CHECK(std::system(unpack.c_str()) == 0);
    auto text = [&](const std::string& name) {
      std::ifstream in(folder.path() + "/out/" + name, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    CHECK(text("attempt_0/rank_0/stdout.log") == "here\n");
    CHECK(text("attempt_0/rank_1/stdout.log") == much);
    CHECK(text("muster-notes.txt").empty());
    connected = false;
    folder.write("all.tar.gz", get("/api/v1/download").body);
    CHECK(std::system(unpack.c_str()) == 0);
    CHECK(text("muster-notes.txt")
              .find("the logs of node-b (attempt=0&ranks=1&streams=stdout,"
                    "stderr) are missing: it is not connected") == 0);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "a node that goes away in the middle breaks the archive off") {
    write("here\n");
    other_server.reset();
    std::unique_ptr<HttpExchange> kept;
    job.on_forward = [&](int, int, std::unique_ptr<HttpExchange>& exchange) {
      kept = std::move(exchange);
      return true;
    };
    Streamed& stream = this->stream("/api/v1/download");
    REQUIRE(run_until([&] { return kept != nullptr; }));
    kept->begin(200, {});
    kept->write("half of it");
    REQUIRE(run_until([&] { return stream.bytes.ends_with("half of it"); }));
    kept.reset();
    REQUIRE(run_until([&] { return stream.ended; }));
    CHECK(stream.broken);
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "only so many searches and downloads go on at a time") {
    write("here\n");
    std::vector<std::unique_ptr<HttpExchange>> kept;
    job.on_forward = [&](int, int, std::unique_ptr<HttpExchange>& exchange) {
      kept.push_back(std::move(exchange));
      return true;
    };
    struct Kind {
      const char* target;
      size_t most;
    };
    for (const Kind& kind :
         {Kind{"/api/v1/search?q=x", SearchSession::kMaxSessions}, Kind{"/api/v1/download", 8}}) {
      kept.clear();
      streams.clear();
      for (size_t i = 0; i < kind.most; ++i)
        stream(kind.target);
      REQUIRE(run_until([&] { return kept.size() == kind.most; }));
      CHECK(get(kind.target).status == 503);
      streams.pop_back();  // a client that leaves makes room
      REQUIRE(run_until([&] {
        if (kept.size() == kind.most) stream(kind.target);
        return kept.size() > kind.most;
      }));
    }
  }

  TEST_CASE_FIXTURE(TwoNodesTest, "one log of one rank can be chosen") {
    write("here\n");
    const HttpResponse answer = get("/api/v1/download?ranks=0&streams=stdout");
    CHECK(answer.status == 200);
    CHECK(forwarded.empty());
    CHECK(get("/api/v1/download?ranks=9").status == 404);
  }
}

}  // namespace muster
