// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/merged_endpoint.h"

#include "status/server_fixture.h"
#include "supervisor/logs/log_file.h"
#include "supervisor/logs/times_format.h"
#include "supervisor/status/merged_json.h"

namespace muster {

namespace {

using Json = nlohmann::json;

constexpr int64_t kStart = 1'790'000'000'000'000;

event::AttemptStarted two_nodes(int here) {
  event::AttemptStarted started;
  started.world_size = 4;
  started.node_count = 2;
  started.node = here;
  if (here == 0) started.nodes = {{0, "node-a", 0, 2}, {1, "node-b", 2, 2}};
  if (here == 1) started.nodes = {{1, "node-b", 2, 2}};
  return started;
}

void write_log(const TestFolder& folder, int local_rank, int rank, int lines) {
  folder.write("attempt_0/" + std::to_string(local_rank) + "/x", "");
  std::string path = folder.path() + "/attempt_0/" + std::to_string(local_rank) + "/stdout.log";
  auto file = LogFile::create_later(path, 0);
  file->keep_times(times_path(path));
  for (int i = 0; i < lines; ++i)
    file->append(std::to_string(rank) + ":" + std::to_string(i) + "\n",
                 kStart + i * 200'000 + rank);
}

// Two nodes with two ranks each; the second has a status server of its own, which gets what is
// forwarded.
struct MergedTest : ServerTest {
  TestFolder other_folder;
  StoryJob other_job;
  std::unique_ptr<StatusServer> other;
  int forwarded = 0;

  MergedTest() {
    job.story.start(4);
    job.dir = folder.path();
    job.story.say(two_nodes(0));
    other_job.story.start(4);
    other_job.dir = other_folder.path();
    other_job.story.say(two_nodes(1));
    StatusServer::Settings settings;
    settings.token = token;
    auto started = StatusServer::start(loop, settings, other_job);
    REQUIRE(started);
    other = std::move(*started);
    job.on_forward = [this](int, int node, std::unique_ptr<HttpExchange>& exchange) {
      if (node != 1) return false;
      ++forwarded;
      other->handle_forwarded(std::move(exchange));
      return true;
    };
    start();
  }
  void write_logs(int lines) {
    for (int local = 0; local < 2; ++local) {
      write_log(folder, local, local, lines);
      write_log(other_folder, local, local + 2, lines);
    }
  }
  static std::string texts(const Json& answer) {
    std::string all;
    for (const Json& line : answer["lines"])
      all += line[7].get<std::string>() + " ";
    return all;
  }
};

}  // namespace

TEST_CASE_FIXTURE(MergedTest, "lines of all nodes come by time, and go on from either end") {
  write_logs(50);
  Json answer = json("/api/v1/merged?streams=stdout&lines=6");
  CHECK(texts(answer) == "0:0 1:0 2:0 3:0 0:1 1:1 ");
  CHECK(answer["lines"][2] == Json({2, "stdout", 0, 0, kStart + 2, 3, true, "2:0"}));
  CHECK(answer["begin_us"] == kStart);
  CHECK(answer["at_begin"] == true);
  CHECK(answer["at_end"] == false);
  CHECK(answer["unreachable"].empty());
  CHECK(forwarded == 1);
  answer =
      json("/api/v1/merged?streams=stdout&lines=4&cursor=" + answer["next"].get<std::string>());
  CHECK(texts(answer) == "2:1 3:1 0:2 1:2 ");
  answer =
      json("/api/v1/merged?streams=stdout&lines=3&cursor=" + answer["prev"].get<std::string>());
  CHECK(texts(answer) == "3:0 0:1 1:1 ");
  answer = json("/api/v1/merged?streams=stdout&tail=3");
  CHECK(texts(answer) == "1:49 2:49 3:49 ");
  CHECK(answer["at_end"] == true);
  CHECK(json("/api/v1/merged?streams=stdout&cursor=" + answer["next"].get<std::string>())["lines"]
            .empty());
}

TEST_CASE_FIXTURE(MergedTest, "every line of every node comes once, page by page") {
  write_logs(300);
  std::string target = "/api/v1/merged?lines=70";
  std::map<std::string, int> seen;
  MergedPlace last{0, -1, -1, -1};
  for (int pages = 0; pages < 100; ++pages) {
    Json answer = json(target);
    for (const Json& line : answer["lines"]) {
      ++seen[line[7].get<std::string>()];
      MergedPlace place{line[4], line[0], 0, line[2]};
      CHECK(last < place);
      last = place;
    }
    if (answer["at_end"] == true) break;
    target = "/api/v1/merged?lines=70&cursor=" + answer["next"].get<std::string>();
  }
  CHECK(seen.size() == 1'200);
  for (const auto& [text, times] : seen)
    CHECK(times == 1);
}

TEST_CASE_FIXTURE(MergedTest, "ranks, streams and a time can be chosen") {
  write_logs(20);
  CHECK(texts(json("/api/v1/merged?ranks=1,3&lines=3")) == "1:0 3:0 1:1 ");
  std::string time = std::to_string(kStart + 10 * 200'000);
  CHECK(texts(json("/api/v1/merged?lines=2&time=" + time)) == "0:10 1:10 ");
  CHECK(texts(json("/api/v1/merged?lines=2&before=" + time)) == "2:9 3:9 ");
  CHECK(json("/api/v1/merged?streams=stderr")["lines"].empty());
}

TEST_CASE_FIXTURE(MergedTest, "a node that cannot be asked is named, the others are shown") {
  write_logs(5);
  job.on_forward = nullptr;
  Json answer = json("/api/v1/merged?lines=4");
  CHECK(texts(answer) == "0:0 1:0 0:1 1:1 ");
  CHECK(answer["unreachable"] == Json({"node-b"}));
  job.on_forward = [](int, int, std::unique_ptr<HttpExchange>& exchange) {
    exchange->reply(200, {}, "{\"lines\": [[\"hello\"]]}");
    exchange.reset();
    return true;
  };
  answer = json("/api/v1/merged?lines=4");
  CHECK(answer["unreachable"] == Json({"node-b"}));
  CHECK(answer["lines"].size() == 4);
}

TEST_CASE_FIXTURE(MergedTest, "a log that its worker writes itself is named as untimed") {
  write_logs(5);
  std::filesystem::remove(folder.path() + "/attempt_0/1/stdout.times");
  std::filesystem::remove(other_folder.path() + "/attempt_0/0/stdout.times");
  Json answer = json("/api/v1/merged?lines=3");
  CHECK(texts(answer) == "0:0 3:0 0:1 ");
  CHECK(answer["untimed"] == Json({1, 2}));
}

TEST_CASE_FIXTURE(MergedTest, "what cannot be understood is said") {
  for (const char* query :
       {"cursor=1.2.3.4", "cursor=after:1.2.3", "cursor=after:1.2.3.4.5", "cursor=after:x.2.3.4",
        "cursor=on:1.2.3.4", "cursor=after:1.99999999999.3.4", "time=-1", "time=1&tail=2",
        "lines=many", "streams=stdin", "ranks=x"}) {
    CAPTURE(query);
    CHECK(get(std::string("/api/v1/merged?") + query).status == 400);
  }
}

TEST_CASE("a page of several nodes ends where a part may lack lines") {
  auto line = [](int64_t time, int rank) {
    MergedLine merged;
    merged.rank = rank;
    merged.line.time_us = time;
    return merged;
  };
  MergedQuery query;
  MergedPage a{{line(1, 0), line(2, 0)}, true, {}};
  MergedPage b{{line(1, 1), line(5, 1), line(9, 1)}, false, {4}};
  MergedPage page = join_merged(query, {a, b});
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[2].line.time_us == 2);
  CHECK(page.more);
  a.more = false;
  CHECK(join_merged(query, {a, b}).lines.size() == 5);
  query.max_lines = 2;
  page = join_merged(query, {a, b});
  CHECK(page.lines.size() == 2);
  CHECK(page.more);
  CHECK(page.untimed == std::vector<int>{4});
  query.way = MergedQuery::Way::kBefore;
  query.max_lines = 10;
  b.more = true;
  b.lines.erase(b.lines.begin());
  page = join_merged(query, {a, b});
  REQUIRE(page.lines.size() == 2);
  CHECK(page.lines[0].line.time_us == 5);
}

}  // namespace muster
