// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/remote_call.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"
#include "status/story_job.h"

namespace muster {

namespace {

// A call and both its ends.
struct CallTest : LoopTest {
  StoryJob job;
  std::unique_ptr<HttpExchange> exchange;
  std::vector<std::string> answerer;  // what its callbacks said
  std::vector<std::string> reader;
  std::unique_ptr<RemoteCall> call;

  CallTest() {
    job.on_forward = [this](int attempt, int node, std::unique_ptr<HttpExchange>& given) {
      CHECK(attempt == 1);
      if (node != 3) return false;
      exchange = std::move(given);
      exchange->set_callbacks(
          {[this] { answerer.push_back("drained"); }, [this] { answerer.push_back("gone"); }});
      return true;
    };
  }
  bool start(int node) {
    call = RemoteCall::start(
        loop, job, 1, node, "/api/v1/job?a=b",
        {[this](int status, const HttpHeaders& headers) {
           reader.push_back(std::to_string(status) + " " + headers[0].second);
         },
         [this](std::string_view piece) { reader.emplace_back(piece); },
         [this] { reader.push_back("end"); }, [this] { reader.push_back("lost"); }});
    return call != nullptr;
  }
  // Until everything that was posted has run.
  void settle() {
    bool done = false;
    loop.post([&] { loop.post([&] { loop.post([&] { done = true; }); }); });
    REQUIRE(run_until([&] { return done; }));
  }
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(CallTest, "an answer is read piece by piece, from the loop") {
  REQUIRE(start(3));
  CHECK(exchange->request().method == "GET");
  CHECK(exchange->request().path == "/api/v1/job");
  CHECK(exchange->request().target == "/api/v1/job?a=b");
  CHECK(exchange->request().parameter("a") == "b");
  exchange->begin(200, {{"Content-Type", "text/plain"}});
  exchange->write("one");
  CHECK(reader.empty());
  CHECK(exchange->unsent() == 3);
  settle();
  CHECK(exchange->unsent() == 0);
  CHECK(reader == Strings{"200 text/plain", "one"});
  CHECK(answerer == Strings{"drained"});
  exchange->write("two");
  exchange->finish();
  exchange.reset();
  settle();
  CHECK(reader == Strings{"200 text/plain", "one", "two", "end"});
}

TEST_CASE_FIXTURE(CallTest, "a node that is not connected takes no call") {
  CHECK_FALSE(start(2));
  settle();
  CHECK(reader.empty());
}

TEST_CASE_FIXTURE(CallTest, "a paused reader is told nothing and the answerer sees that it waits") {
  REQUIRE(start(3));
  call->set_paused(true);
  exchange->reply(200, {{"Content-Type", "text/plain"}}, "whole");
  exchange.reset();
  settle();
  CHECK(reader.empty());
  call->set_paused(false);
  settle();
  CHECK(reader == Strings{"200 text/plain", "whole", "end"});
  CHECK(answerer.empty());
}

TEST_CASE_FIXTURE(CallTest, "an answer that breaks off is lost, with what came of it") {
  REQUIRE(start(3));
  exchange->begin(200, {{"Content-Type", "text/plain"}});
  exchange->write("half");
  exchange.reset();
  settle();
  CHECK(reader == Strings{"200 text/plain", "half", "lost"});
  // Nothing is told twice.
  call->set_paused(true);
  call->set_paused(false);
  settle();
  CHECK(reader.size() == 3);
}

TEST_CASE_FIXTURE(CallTest, "dropping the call tells the answerer, once and not from inside") {
  REQUIRE(start(3));
  exchange->begin(200, {{"Content-Type", "text/plain"}});
  call.reset();
  CHECK(answerer.empty());
  settle();
  CHECK(answerer == Strings{"gone"});
  exchange->write("more");
  CHECK(exchange->unsent() == 0);
  exchange->finish();
  settle();
  CHECK(answerer == Strings{"gone"});
  CHECK(reader.empty());
}

TEST_CASE_FIXTURE(CallTest, "a reader may drop its call in each of its callbacks") {
  for (int at = 0; at < 3; ++at) {
    int told = 0;
    auto drop = [&] {
      if (told++ == at) call.reset();
    };
    call = RemoteCall::start(loop, job, 1, 3, "/",
                             {[&](int, const HttpHeaders&) { drop(); },
                              [&](std::string_view) { drop(); }, [&] { drop(); }, [] {}});
    exchange->reply(200, {}, "body");
    exchange.reset();
    settle();
    CHECK(told == at + 1);
    CHECK(call == nullptr);
  }
}

}  // namespace muster
