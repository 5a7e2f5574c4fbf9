// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/socket_address.h"
#include "loop/tcp_connector.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// Many nodes of one worker each that never run anything: they say what real agents say, when those
// would say it, and note how long the coordinator takes. One round is under way at a time:
//   form: all connect and join                   -> all are assigned
//   fail: one tells of a failure of its worker   -> all are told to stop, settle, are assigned
//   again stop: somebody else has the job stopped      -> all are told to stop, settle, are told
//   the end
class Crowd {
 public:
  struct Settings {
    SocketAddress coordinator;
    std::string run_id;
    std::string token;
    int nodes = 0;  // without the coordinator's own
    int max_restarts = 0;
  };
  // What one node said and heard in a round, the mean of all. What comes with time, heartbeats and
  // news of a long wait, is not counted.
  struct Traffic {
    double messages_up = 0;
    double bytes_up = 0;
    double messages_down = 0;
    double bytes_down = 0;
  };
  struct Round {
    int64_t us = 0;                       // from its beginning to the last assignment or end
    std::vector<int64_t> stops_us;        // from the failure's report to each order to stop
    std::vector<int64_t> round_trips_us;  // of the heartbeats meanwhile
    int64_t reconnects = 0;               // attempts that had no answer
    Traffic traffic;
  };
  using OnDone = std::function<void(const Round&)>;
  using OnTrouble = std::function<void(const std::string&)>;

  Crowd(Loop& loop, Settings settings, OnTrouble on_trouble);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void form(OnDone on_done) { begin(Kind::kForm, std::move(on_done)); }
  void fail(OnDone on_done) { begin(Kind::kFail, std::move(on_done)); }
  void stop(OnDone on_done) { begin(Kind::kStop, std::move(on_done)); }

  // Nothing but heartbeats, and samples as often as that if it is not 0; what the nodes note
  // meanwhile.
  void rest(Milliseconds sample_interval) {
    round_ = {};
    sample_interval_ = sample_interval;
  }
  const Round& noted() const { return round_; }
  // How far a round is that does not end.
  std::string progress() const;

 private:
  class Agent;
  enum class Kind { kForm, kFail, kStop };

  void begin(Kind kind, OnDone on_done);
  void one_done();
  void beat();
  void measure();

  Loop& loop_;
  const Settings settings_;
  OnTrouble on_trouble_;
  std::unique_ptr<char[]> read_buffer_;
  std::vector<std::unique_ptr<Agent>> agents_;
  Kind kind_ = Kind::kForm;
  Round round_;
  OnDone on_done_;
  int64_t began_us_ = 0;
  size_t done_ = 0;       // nodes for which the round is over
  size_t next_beat_ = 0;  // who sends a heartbeat next: they are spread over the interval
  size_t last_to_fail_ = 0;
  Milliseconds sample_interval_{0};
  double samples_due_ = 0;  // nodes whose turn it is to tell samples, and a part of one
  size_t next_to_measure_ = 0;
  Owned<Timer> heart_;
};

}  // namespace muster
