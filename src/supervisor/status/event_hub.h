// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "loop/http_server.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/row_versions.h"

namespace muster {

// The event streams of docs/api.md: first the whole state, then what changed, to any number of
// clients. Owned by the status server. Costs nothing until somebody asks for the first stream.
//
// Nothing is queued for a client. One whose connection has taken all it was sent gets what has
// changed since; one that is slow gets less often more at once.
class EventHub {
 public:
  struct Limits {
    size_t max_streams = 128;
    Milliseconds gather_time{50};       // events that come together travel together
    Milliseconds sample_period{2'000};  // also how often clients are looked after
    Milliseconds silence{10'000};       // then a comment, so that dead clients are noticed
  };
  static constexpr size_t kMaxEvents = 200;    // of the newest in one message
  static constexpr size_t kMaxAttempts = 200;  // the newest, in the whole state

  EventHub(Loop& loop, JobSource& source, Limits limits);
  EventHub(Loop& loop, JobSource& source) : EventHub(loop, source, Limits{}) {}
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // Answers it, with 503 if there are too many. `last_id` is what the client has had.
  void open(std::unique_ptr<HttpExchange> exchange, std::string_view last_id);

  // Tells everybody what there is now.
  void hurry();
  bool all_told() const;
  // Ends all streams, so that clients see that nothing is missing.
  void end_all();

  size_t streams() const { return clients_.size(); }

 private:
  struct Client {
    std::unique_ptr<HttpExchange> exchange;
    int64_t told = -1;         // up to which version; -1: nothing yet
    int64_t told_samples = 0;  // the same of the samples
    Clock::time_point last_write{};
    bool gone = false;
  };

  void begin();
  void on_event(const Event& event);
  void flush();
  void look_after();
  void take_samples();
  void post_flush();
  void send(Client& client, std::string_view message);
  void drop_gone();
  std::string message_since(int64_t version) const;
  std::string samples_since(int64_t version) const;

  Loop& loop_;
  JobSource& source_;
  const Limits limits_;
  std::string epoch_;  // of the ids: those of another server mean nothing here
  bool begun_ = false;
  RowVersions versions_;
  std::deque<Event> recent_;
  bool live_ = false;
  struct SampleRow {
    RankSample sample;
    int64_t version = 0;
  };
  std::unordered_map<int, SampleRow> samples_;  // by rank
  int64_t sample_version_ = 0;
  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 0;
  Owned<Timer> gather_timer_;
  Owned<Timer> period_timer_;
  std::shared_ptr<EventHub*> self_;  // null inside once this is gone
};

}  // namespace muster
