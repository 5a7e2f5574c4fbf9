// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"

namespace muster {

// What tells two coordinators apart, for the explored worlds.
struct CoordinatorFingerprint {
  static void add(const Coordinator& coordinator, Coordinator::Time now, std::string& key);
  static bool has_old_workers(const Coordinator& coordinator);
  static bool rests(const Coordinator& coordinator);
};

// A coordinator and a model of the agents it decides for, with a queue in each direction.
namespace explored {

using Time = Coordinator::Time;
using Phase = Coordinator::Phase;

// The id of an agent by its number.
std::string id_of(size_t agent);

// Adds a number to a key.
void put(std::string& key, int64_t number);

struct Mishaps {
  int failures = 0;
  int crashes = 0;
  int silences = 0;
  int reconnections = 0;
  int leaves = 0;
  int signals = 0;
  int restarts = 0;  // that somebody asks for
  int lingers = 0;   // stops that take long
};

struct Setup {
  int min = 1;
  int max = 1;
  int max_restarts = 0;
  int nodes = 2;  // that may ever come; the first is the host's
  Mishaps mishaps;
  std::chrono::milliseconds grow_every{0};
  const char* failure_policy = "";
  const char* same_failure_limit = "0";
  const char* restart_backoff = "0";
};

enum class Up { kJoin, kNotice, kEnding, kSettled, kLost, kLeft, kSignal, kRestart, kGoodbye };

struct UpMessage {
  Up kind = Up::kJoin;
  int attempt = -1;
  bool complete = false;
  bool failed = false;
};

enum class Work { kNone, kRunning, kStopping, kGone };

// One node's muster as far as the coordinator can tell.
struct Agent {
  bool out = true;         // has not come yet
  bool dead = false;       // crashed, left, refused, or went home
  bool cut = false;        // what is sent to it does not arrive: its connection is an old one
  bool connected = false;  // the coordinator knows it
  int attempt = -1;        // whose verdict or end it has not heard yet
  Work work = Work::kNone;
  bool failed = false;
  bool complete = false;
  std::vector<UpMessage> up;  // (a deque is slow to copy)
  std::vector<Action> down;
};

// What broke a claim, "" while all hold. Checked after each step, not at each claim: doctest's
// macros are too slow for millions of them.
struct Claims {
  std::string broken;
  void must(bool holds, const char* claim) {
    if (!holds && broken.empty()) broken = claim;
  }
};

struct World {
  explicit World(const Setup& the_setup)
      : setup(&the_setup),
        agents(static_cast<size_t>(the_setup.nodes)),
        left(the_setup.mishaps),
        coordinator(settings(), now) {}

  CoordinatorSettings settings() const {
    CoordinatorSettings settings;
    settings.terms = terms();
    settings.host_id = "h";
    settings.join_timeout = std::chrono::seconds(20);
    settings.last_call = std::chrono::seconds(3);
    settings.grow_every = setup->grow_every;
    settings.endpoint_host = "node-h";
    settings.store_port = 1;
    return settings;
  }
  JobTerms terms() const {
    JobTerms terms;
    terms.min_nodes = setup->min;
    terms.max_nodes = setup->max;
    terms.max_restarts = setup->max_restarts;
    terms.failure_policy = setup->failure_policy;
    terms.same_failure_limit = setup->same_failure_limit;
    terms.restart_backoff = setup->restart_backoff;
    return terms;
  }

  std::string key() const;
  void send(size_t to, UpMessage message) { agents[to].up.push_back(message); }
  void deliver_up(size_t from);
  void deliver_down(size_t to);
  void take(Claims& claims);
  void on_assigned(const std::vector<action::Assign>& batch, Claims& claims);
  void on_told(const AttemptVerdict& verdict, Claims& claims);
  void on_told_early(const AttemptVerdict& verdict, Claims& claims);
  void on_end(const JobEnd& end, Claims& claims);
  void on_first_notice(size_t from, const std::vector<Action>& actions, Claims& claims) const;
  void join(size_t agent);
  bool pass_time(Claims& claims);

  const Setup* setup;
  Time now{std::chrono::hours(1)};
  std::vector<Agent> agents;
  Mishaps left;
  Coordinator coordinator;

  // What was seen.
  int attempt = -1;
  int restart_count = 0;
  std::set<size_t> members;
  std::vector<size_t> places;  // the members by their GROUP_RANK
  std::set<size_t> excluded;
  std::set<size_t> unsettled;
  std::set<size_t> complete;
  bool noticed = false;
  int told_attempt = -1;
  std::optional<AttemptVerdict> told;
  std::optional<AttemptVerdict> early;
  std::optional<JobEnd> ended;
  bool signalled = false;
  int restart_asked = -1;  // the last attempt that was to be ended for another
  bool closed = false;
  Claims pending;  // found while delivering
};

// The steps that are possible in a world.
enum class Step {
  kDeliverUp,
  kDeliverDown,
  kStopped,
  kFinish,
  kTime,  // up to here they need no mishap: a fair run takes the first that is possible
  kJoin,
  kFail,
  kCrash,
  kSilence,
  kReturn,
  kReconnect,
  kLeave,
  kSignal,
  kRestart,
  kLinger,
};

inline constexpr Step kLastStep = Step::kLinger;
inline constexpr Step kLastFair = Step::kTime;

// Whether agent `i` can take the step.
bool possible(const World& world, Step step, size_t i);

// Takes a step; false if time does not pass any more.
bool take_step(World& world, Step step, size_t i, Claims& claims);

}  // namespace explored

}  // namespace muster
