// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/series_endpoint.h"

#include "status/server_fixture.h"

namespace muster {

TEST_CASE_FIXTURE(ServerTest, "what a rank says of its progress is a series") {
  job.story.start(2).start_attempt(2);
  job.dir = folder.path();
  folder.write("attempt_0/1/stdout.log", "step 1/9\nloss nan\nstep 2/9 loss 0.5\nloss 0.25\n");
  start();
  CHECK(json("/api/v1/series/0/1")["points"] ==
        nlohmann::json({{0, 1, 9, nullptr}, {0, 2, 9, 0.25}}));
  CHECK(json("/api/v1/series/0/0")["points"].empty());
}

TEST_CASE_FIXTURE(ServerTest, "there is a series only of ranks that there are") {
  job.story.start(2).start_attempt(2);
  job.dir = folder.path();
  start();
  for (const char* place : {"0/2", "1/0", "x/0", "0/-1", "0/99999999999999999999"}) {
    CAPTURE(place);
    CHECK(get(std::string("/api/v1/series/") + place).status == 404);
  }
}

TEST_CASE_FIXTURE(ServerTest, "the series of a rank elsewhere is asked for there") {
  job.story.start(2);
  event::AttemptStarted started;
  started.world_size = 2;
  started.node_count = 2;
  started.nodes = {{0, "node-a", 0, 1}, {1, "node-b", 1, 1}};
  job.story.say(started);
  job.dir = folder.path();
  start();
  CHECK(get("/api/v1/series/0/1").status == 502);
  job.on_forward = [](int, int node, std::unique_ptr<HttpExchange>& exchange) {
    exchange->reply(200, {}, "node " + std::to_string(node));
    exchange.reset();
    return true;
  };
  CHECK(get("/api/v1/series/0/1").body == "node 1");
}

}  // namespace muster
