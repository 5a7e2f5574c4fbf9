// SPDX-License-Identifier: Apache-2.0
#include "status/server_fixture.h"
#include "supervisor/status/status_server.h"

namespace muster {

namespace {

using Json = nlohmann::json;

std::string error_of(const HttpResponse& answer) {
  const Json error = Json::parse(answer.body).at("error");
  CHECK(error.at("status") == answer.status);
  return error.at("message");
}
std::string hint_of(const HttpResponse& answer) {
  return Json::parse(answer.body).at("error").value("hint", "");
}

}  // namespace

TEST_CASE_FIXTURE(ServerTest, "rows are answered as the state has them") {
  job.story = eventful_story();
  start();
  CHECK(json("/api/v1/job").at("run_id") == "4f1c");
  CHECK(json("/api/v1/job").at("outcome") == "failed");
  CHECK(json("/api/v1/attempts").at("attempts").size() == 2);
  CHECK(json("/api/v1/nodes").at("nodes").at(0).at("host") == "node-b");
  const Json ranks = json("/api/v1/ranks");
  CHECK(ranks.at("attempt") == 1);
  CHECK(ranks.at("ranks").size() == 3);
  const Json some = json("/api/v1/ranks?attempt=0&ranks=0,2");
  CHECK(some.at("attempt") == 0);
  REQUIRE(some.at("ranks").size() == 2);
  CHECK(some.at("ranks").at(1).at("rank") == 2);
  const Json failures = json("/api/v1/failures").at("failures");
  REQUIRE(failures.size() == 3);
  CHECK(failures.at(0).at("attempt") == 1);
  CHECK(failures.at(2).at("attempt") == 0);
  CHECK(json("/api/v1/samples").at("samples").empty());
}

TEST_CASE_FIXTURE(ServerTest, "before the first attempt there are no ranks, and that is no error") {
  start();
  CHECK(json("/api/v1/ranks").at("attempt").is_null());
  CHECK(json("/api/v1/ranks").at("ranks").empty());
  CHECK(json("/api/v1/attempts").at("attempts").empty());
  CHECK(json("/api/v1/failures").at("failures").empty());
}

TEST_CASE_FIXTURE(ServerTest, "what is asked wrongly is told what would be right") {
  job.story.start(1).start_attempt(1);
  start();
  HttpResponse answer = get("/api/v1/ranks?attempt=4");
  CHECK(answer.status == 404);
  CHECK(error_of(answer) == "there is no attempt 4 so far");
  CHECK(get("/api/v1/ranks?ranks=a").status == 400);
  answer = get("/nothing");
  CHECK(answer.status == 404);
  CHECK(error_of(answer) == "there is no /nothing");
  CHECK(hint_of(answer).find("/api/v1/job") != std::string::npos);
  answer = get("/api/v1/stop", {{"Authorization", "Bearer " + token}});
  CHECK(answer.status == 405);
  CHECK(answer.header("allow") == "POST");
  answer = post("/api/v1/job", {{"Authorization", "Bearer " + token}});
  CHECK(answer.status == 405);
  CHECK(answer.header("allow") == "GET, HEAD");
}

TEST_CASE_FIXTURE(ServerTest, "every answer carries the headers that browsers need") {
  job.story.start(1).start_attempt(1);
  job.dir = folder.path();
  folder.write("attempt_0/0/stdout.log", "<script>alert(1)</script>\n");
  start();
  for (const char* target :
       {"/", "/healthz", "/api/v1/job", "/nothing", "/api/v1/ranks?attempt=9",
        "/api/v1/logs/0/0/stdout", "/api/v1/logs/0/0/stdout?tail=1", "/api/v1/events", "/app.js"}) {
    CAPTURE(std::string(target));
    const HttpResponse answer = get(target);
    const std::string policy(answer.header("content-security-policy"));
    CHECK(policy.find("default-src 'none'") != std::string::npos);
    CHECK(policy.find("unsafe") == std::string::npos);
    CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
    CHECK(answer.header("x-content-type-options") == "nosniff");
    CHECK(answer.header("referrer-policy") == "no-referrer");
    CHECK(answer.header("cross-origin-resource-policy") == "same-origin");
    CHECK(answer.header("cross-origin-opener-policy") == "same-origin");
    CHECK(answer.header("x-frame-options") == "DENY");
    CHECK(answer.header("cache-control") != "");
    CHECK(answer.header("access-control-allow-origin") == "");
  }
}

TEST_CASE_FIXTURE(ServerTest, "a log is never markup") {
  job.story.start(1).start_attempt(1);
  job.dir = folder.path();
  folder.write("attempt_0/0/stdout.log", "<script>alert(1)</script>\n");
  start();
  const HttpResponse answer = get("/api/v1/logs/0/0/stdout");
  CHECK(answer.header("content-type") == "text/plain; charset=utf-8");
  CHECK(std::string(answer.header("content-security-policy")).find("sandbox") != std::string::npos);
}

TEST_CASE_FIXTURE(ServerTest, "the page is served compressed, and not again if it is known") {
  start();
  HttpResponse answer = get("/", {{"Accept-Encoding", "gzip"}});
  CHECK(answer.status == 200);
  CHECK(answer.header("content-type") == "text/html; charset=utf-8");
  CHECK(answer.header("content-encoding") == "gzip");
  CHECK(answer.header("cache-control") == "no-cache");
  const std::string etag(answer.header("etag"));
  CHECK(etag != "");
  CHECK(get("/", {{"Accept-Encoding", "gzip"}, {"If-None-Match", etag}}).status == 304);
  answer = get("/");
  CHECK(answer.header("content-encoding") == "");
  CHECK(answer.body.find("<!doctype html>") == 0);
  CHECK(post("/", {{"Authorization", "Bearer " + token}}).status == 405);
}

TEST_CASE_FIXTURE(ServerTest, "a browser keeps the token as a cookie and can do all with it") {
  job.story.start(1).start_attempt(1);
  start();
  const std::string url = server->url();
  const std::string target = url.substr(url.find("/?"));
  const HttpResponse answer = get(target, {{"Accept", "text/html"}});
  CHECK(answer.status == 303);
  CHECK(answer.header("location") == "/");
  const std::string cookie(answer.header("set-cookie"));
  CHECK(cookie.find("muster_" + std::to_string(port()) + "=") == 0);
  CHECK(cookie.find("HttpOnly") != std::string::npos);
  CHECK(cookie.find("SameSite=Strict") != std::string::npos);
  const HttpResponse stopped =
      post("/api/v1/stop", {{"Cookie", cookie.substr(0, cookie.find(';'))},
                            {"Origin", "http://127.0.0.1:" + std::to_string(port())}});
  CHECK(stopped.status == 200);
  CHECK(job.asked == std::vector<std::string>{"stop HTTP from 127.0.0.1"});
}

TEST_CASE_FIXTURE(ServerTest, "the job is changed by POST with the token alone") {
  job.story.start(1).start_attempt(1);
  start();
  CHECK(post("/api/v1/stop").status == 401);
  CHECK(post("/api/v1/restart").status == 401);
  CHECK(post("/api/v1/stop",
             {{"Authorization", "Bearer " + token}, {"Origin", "https://evil.example"}})
            .status == 403);
  CHECK(job.asked.empty());
  CHECK(post("/api/v1/stop?kill=1", {{"Authorization", "Bearer " + token}}).status == 200);
  CHECK(post("/api/v1/restart?token=" + token).status == 200);
  CHECK(job.asked ==
        std::vector<std::string>{"stop HTTP from 127.0.0.1 kill", "restart HTTP from 127.0.0.1"});
  job.refusal = "the job is over";
  const HttpResponse answer = post("/api/v1/restart", {{"Authorization", "Bearer " + token}});
  CHECK(answer.status == 409);
  CHECK(error_of(answer) == "the job is over");
}

TEST_CASE_FIXTURE(ServerTest,
                  "a dump is answered with the groups of all nodes, and where each saved") {
  job.story.start(1).start_attempt(1);
  job.saved = {{0, "node-a", "asked", "/a/stacks_0", {"ranks 0-2: wait"}, ""},
               {0, "node-b", "asked", "", {"rank 3: spin"}, "disk full"}};
  start();
  CHECK(post("/api/v1/dump").status == 401);
  const HttpResponse answer = post("/api/v1/dump?token=" + token);
  CHECK(answer.status == 200);
  CHECK(answer.body.find("\"ranks 0-2: wait\"") != std::string::npos);
  CHECK(answer.body.find("\"rank 3 differs: spin\"") != std::string::npos);
  CHECK(answer.body.find("\"/a/stacks_0\"") != std::string::npos);
  CHECK(answer.body.find("\"disk full\"") != std::string::npos);
  job.refusal = "no worker runs";
  CHECK(error_of(post("/api/v1/dump?token=" + token)) == "no worker runs");
  CHECK(job.asked == std::vector<std::string>(2, "dump HTTP from 127.0.0.1"));
}

TEST_CASE_FIXTURE(ServerTest, "our own user reads without the token, under our own names alone") {
  start();
  CHECK(get("/healthz").body == "ok\n");
  CHECK(get("/api/v1/job").status == 200);
}

TEST_CASE_FIXTURE(ServerTest, "a taken port is told with what to do") {
  start();
  StatusServer::Settings settings;
  settings.port = port();
  const auto second = StatusServer::start(loop, settings, job);
  REQUIRE_FALSE(second);
  CAPTURE(second.error().message);
  CHECK(second.error().message.find("http: bind 127.0.0.1:") == 0);
  CHECK(second.error().message.find("ddress already in use") != std::string::npos);
  CHECK(second.error().message.find("--http HOST:PORT") != std::string::npos);
}

TEST_CASE("tokens are long and never the same") {
  CHECK(make_status_token().size() == 32);
  CHECK(make_status_token() != make_status_token());
}

}  // namespace muster
