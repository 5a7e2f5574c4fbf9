// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/row_versions.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "job/job_story.h"
#include "supervisor/status/rows.h"

namespace muster {

namespace {

// Every row of a state as it is shown, by its key.
std::map<std::string, std::string> rows_of(const JobState& state) {
  const JobView view{state, true, true, 0};
  std::map<std::string, std::string> rows;
  auto row = [&](const std::string& key, auto write) {
    std::string text;
    JsonOut out(text);
    write(out);
    rows[key] = text;
  };
  row("job", [&](JsonOut& out) { write_job(out, view); });
  for (const NodeRow& node : node_rows(view)) {
    const std::string key =
        node.node ? std::to_string(node.node - state.nodes.data()) : std::string("own");
    row("node " + key, [&](JsonOut& out) { write_node(out, view, node); });
  }
  for (size_t a = 0; a < state.attempts.size(); ++a) {
    const AttemptState& attempt = state.attempts[a];
    row("attempt " + std::to_string(a), [&](JsonOut& out) { write_attempt(out, view, attempt); });
    for (size_t r = 0; r < attempt.ranks.size(); ++r) {
      row("rank " + std::to_string(a) + " " + std::to_string(r),
          [&](JsonOut& out) { write_rank(out, view, attempt, attempt.ranks[r]); });
    }
  }
  return rows;
}

bool has(const RowVersions::Changes& changes, const std::string& key) {
  if (key == "job") return changes.job;
  if (key == "node own") return changes.all_nodes;
  for (size_t node : changes.nodes)
    if (key == "node " + std::to_string(node)) return true;
  if (key.starts_with("node ")) return changes.all_nodes;
  for (size_t attempt : changes.attempts)
    if (key == "attempt " + std::to_string(attempt)) return true;
  for (const auto& [attempt, rank] : changes.ranks)
    if (key == "rank " + std::to_string(attempt) + " " + std::to_string(rank)) return true;
  return false;
}

// Plays the events one by one and looks that whatever is shown differently is among the changes,
// for whoever was told one event before and for whoever was told long ago.
void check_story(const JobStory& story) {
  JobState state;
  RowVersions versions;
  versions.reset(state, 0);
  std::vector<std::map<std::string, std::string>> shown{rows_of(state)};
  for (const Event& event : story.events) {
    apply(state, event);
    versions.note(state, event.body, event.seq + 1);
    const std::map<std::string, std::string> now = rows_of(state);
    for (size_t since : {shown.size() - 1, shown.size() / 2}) {
      const RowVersions::Changes changes = versions.since(static_cast<int64_t>(since));
      for (const auto& row : now) {
        const auto before = shown[since].find(row.first);
        const bool same = before != shown[since].end() && before->second == row.second;
        CAPTURE(event.seq);
        CAPTURE(row.first);
        CAPTURE(row.second);
        if (!same) REQUIRE(has(changes, row.first));
      }
    }
    shown.push_back(now);
  }
  const RowVersions::Changes none = versions.since(static_cast<int64_t>(story.events.size()));
  CHECK_FALSE(none.job);
  CHECK_FALSE(none.all_nodes);
  CHECK(none.nodes.empty());
  CHECK(none.attempts.empty());
  CHECK(none.ranks.empty());
}

// Events in no sensible order, about two nodes with two ranks each.
JobStory wild_story(unsigned seed) {
  std::mt19937 random(seed);
  auto upto = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  JobStory story;
  story.start(2);
  for (int i = 0; i < 120; ++i) {
    story.after_ms(upto(50) + 1);
    const int rank = upto(4);
    const int attempt = std::max(0, story.attempt - upto(2));
    const std::string id = "n" + std::to_string(upto(3));
    switch (upto(17)) {
      case 0: {
        event::AttemptStarted started;
        started.attempt = ++story.attempt;
        started.world_size = 4;
        started.node_count = 2;
        started.nodes = {{0, "node-a", 0, 2}, {1, "node-b", 2, 2}};
        started.nodes[0].id = "n0";
        started.nodes[1].id = id;
        story.say(started);
        break;
      }
      case 1:
      case 2:
      case 3:
        story.say(event::WorkerSpawned{attempt, rank, rank % 2, 100 + i});
        break;
      case 4:
        story.say(event::SpawnFailed{attempt, rank, rank % 2, 2, "not there"});
        break;
      case 5:
        story.say(event::FirstOutput{attempt, rank, Stream::kStderr});
        break;
      case 6:
      case 7:
        story.say(event::WorkerExited{attempt, rank, rank % 2, 1, upto(3), 5000});
        break;
      case 8:
        story.say(event::SignalSent{attempt, rank, 1, 15, false, StopReason::kFailure});
        break;
      case 9:
        story.say(event::SignalReceived{15, 1, 0, "root", upto(2) == 0, "node-b"});
        break;
      case 10:
        story.say(event::StopOrdered{attempt, 15, StopReason::kSignal, "why"});
        break;
      case 11: {
        event::FailureFound found;
        found.attempt = attempt;
        found.rank = rank - 1;
        found.kind = "exit_code";
        found.message = "message " + std::to_string(i);
        story.say(found);
        break;
      }
      case 12:
        story.say(event::VictimsFound{attempt, {{"0-1", "stopped " + std::to_string(i)}}});
        break;
      case 13:
        story.say(event::RestartScheduled{story.attempt + 1, i, 99, true});
        break;
      case 14: {
        event::NodeJoined joined;
        joined.id = id;
        joined.host = "host of " + id;
        joined.pid = i;
        story.say(joined);
        break;
      }
      case 15:
        story.say(event::NodeLost{id, "host", 0, "silent", "message"});
        break;
      case 16:
        story.say(event::RestartRequested{attempt, "me", "node-a"});
        upto(2) == 0 ? story.say(event::NodesAwaited{1, 2, 2, {"node-a"}, i, "text"})
                     : story.say(event::Trouble{"logs", "trouble " + std::to_string(i)});
        break;
    }
  }
  story.say(event::LeftoverFound{7, "sleep", "S", "", true, "ended"});
  story.ends(Outcome::kFailed, 1);
  return story;
}

}  // namespace

TEST_CASE("every row that a job's events change is among the changes") {
  check_story(eventful_story());
}

TEST_CASE("so it is when events come in any order") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    check_story(wild_story(seed));
  }
}

TEST_CASE("what one rank does is not told of the others") {
  JobStory story;
  story.start(1000).start_attempt(1000);
  RowVersions versions;
  versions.reset(story.state, story.last().seq + 1);
  const int64_t before = story.last().seq + 1;
  story.exits(7, 0);
  versions.note(story.state, story.last().body, story.last().seq + 1);
  const RowVersions::Changes changes = versions.since(before);
  CHECK(changes.ranks == std::vector<std::pair<size_t, size_t>>{{0, 7}});
  CHECK(changes.attempts == std::vector<size_t>{0});
  CHECK(changes.job);
  CHECK_FALSE(changes.all_nodes);
}

}  // namespace muster
