// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job/job_story.h"
#include "supervisor/status/job_source.h"

namespace muster {

// A job that does what the test tells: real events through the real reducer.
struct StoryJob : JobSource {
  JobStory story;
  std::function<void(const Event&)> observer;
  bool is_live = true;
  std::string dir;
  std::string own_host = "node-a";
  std::vector<RankSample> rank_samples;
  size_t keep_recent = kRecentEvents;
  std::vector<event::EvidenceSaved> saved;
  std::vector<std::string> asked;  // "stop HTTP from 127.0.0.1 kill"
  std::string refusal;
  std::function<bool(int attempt, int node, std::unique_ptr<HttpExchange>&)> on_forward;

  // Tells what the story has told since the last time.
  size_t told = 0;
  void tell() {
    for (; told < story.events.size(); ++told) {
      if (observer) observer(story.events[told]);
    }
  }
  StoryJob& say(EventBody body) {
    story.say(std::move(body));
    tell();
    return *this;
  }

  const JobState& state() const override { return story.state; }
  int64_t next_seq() const override { return static_cast<int64_t>(story.events.size()); }
  std::vector<Event> recent_events() const override {
    const size_t count = std::min(keep_recent, story.events.size());
    return {story.events.end() - static_cast<std::ptrdiff_t>(count), story.events.end()};
  }
  void set_observer(std::function<void(const Event&)> to) override { observer = std::move(to); }
  bool live() const override { return is_live; }
  std::string run_dir() const override { return dir; }
  const std::string& host() const override { return own_host; }
  bool hosting() const override { return true; }
  std::vector<RankSample> samples() override { return rank_samples; }
  std::vector<StoreWaiter> store_waiters() const override { return {}; }
  std::optional<StoreCounters> store_counters() const override { return std::nullopt; }
  bool forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) override {
    return on_forward && on_forward(attempt, node, exchange);
  }
  std::string stop(const std::string& who, bool kill) override {
    asked.push_back("stop " + who + (kill ? " kill" : ""));
    return refusal;
  }
  std::string restart(const std::string& who) override {
    asked.push_back("restart " + who);
    return refusal;
  }
  std::string dump(const std::string& who, OnDumped done) override {
    asked.push_back("dump " + who);
    if (refusal.empty()) done(saved);
    return refusal;
  }
};

}  // namespace muster
