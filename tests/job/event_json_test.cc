// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_json.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "job/job_story.h"
#include "supervisor/diagnosis/diagnose.h"

namespace muster {

TEST_CASE("every event survives the way to JSON and back") {
  std::set<size_t> kinds;
  for (const Event& event : eventful_story().events) {
    std::string line = event_to_json(event);
    CAPTURE(line);
    CHECK(line.find('\n') == std::string::npos);
    Result<Event> back = event_from_json(line);
    REQUIRE(back);
    CHECK(back->seq == event.seq);
    CHECK(back->time == event.time);
    CHECK(back->mono_us == event.mono_us);
    CHECK(back->body.index() == event.body.index());
    CHECK(event_to_json(*back) == line);
    kinds.insert(event.body.index());
  }
  CHECK(kinds.size() == std::variant_size_v<EventBody>);
}

TEST_CASE("the format of a line is stable") {
  JobStory story;
  story.start(1).start_attempt(1).after_ms(1500).exits(0, 3 << 8);
  CHECK(event_to_json(story.last()) ==
        R"({"seq":3,"time":"2026-11-29T12:00:01.500000Z","mono_us":1500000,)"
        R"("event":"worker_exited","attempt":0,"rank":0,"local_rank":0,"pid":1000,)"
        R"("wait_status":768,"max_rss_kib":5000,"exit_code":3,"signal":0})");
}

TEST_CASE("docs/events.md names every event and each of its keys") {
  std::stringstream text;
  text << std::ifstream(MUSTER_SOURCE_DIR "/docs/events.md").rdbuf();
  auto documented = [&](std::string_view name) {
    return text.str().find("`" + std::string(name) + "`") != std::string::npos;
  };
  for (const Event& event : eventful_story().events) {
    CHECK(documented(event_name(event.body)));
    nlohmann::json json = nlohmann::json::parse(event_to_json(event));
    for (const auto& [key, value] : json.items()) {
      const std::string& name = key;  // Clang 14 cannot capture a structured binding
      CAPTURE(name);
      CHECK(documented(name));
    }
  }
}

TEST_CASE("bytes that are no UTF-8 are replaced") {
  Event event;
  event.body = event::Trouble{"logs", "bad \xFF byte"};
  CHECK(event_to_json(event).find("bad \xEF\xBF\xBD byte") != std::string::npos);
}

TEST_CASE("missing keys keep their defaults and unknown ones are ignored") {
  Result<Event> event = event_from_json(R"({"event":"signal_sent","rank":4,"colour":"red"})");
  REQUIRE(event);
  const auto& sent = std::get<event::SignalSent>(event->body);
  CHECK(sent.rank == 4);
  CHECK(sent.reason == StopReason::kNone);
}

TEST_CASE("wrong types and unknown names are errors") {
  for (std::string_view line :
       {"", "null", "[]", "{", "{}", R"({"event":"no_such"})", R"({"event":3})",
        R"({"event":"trouble","message":3})", R"({"event":"worker_spawned","pid":"x"})",
        R"({"event":"worker_spawned","pid":1.5})", R"({"event":"worker_spawned","pid":5000000000})",
        R"({"event":"trouble","mono_us":18446744073709551615})",
        R"({"event":"job_ended","outcome":"maybe"})", R"({"event":"trouble","time":"yesterday"})",
        R"({"event":"trouble","time":"2026-11-29T12:00:00.000000Zx"})",
        R"({"event":"trouble","time":"1013-11-29T12:00:00.000000Z"})",
        R"({"event":"trouble","mono_us":-1})",
        R"({"event":"trouble","mono_us":9000000000000000000})",
        R"({"event":"job_started","command":[1]})"}) {
    CAPTURE(line);
    CHECK_FALSE(event_from_json(line));
  }
}

}  // namespace muster
