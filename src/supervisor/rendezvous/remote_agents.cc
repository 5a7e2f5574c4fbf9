// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/remote_agents.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "supervisor/rendezvous/event_gate.h"
#include "supervisor/rendezvous/heart.h"
#include "supervisor/rendezvous/sample_push.h"

namespace muster {

namespace {

// What one read of a control connection may take. All share it.
constexpr size_t kReadBuffer = size_t{64} << 10;
// A clock that differs by more is said.
constexpr int64_t kMaxSkewUs = 1'000'000;
// By which a timer comes late rather than early and again.
constexpr Milliseconds kTick{1};
// Agents whose clock was spoken of; beyond that none is.
constexpr size_t kMaxSkewed = 100'000;
// How often a node tells samples while somebody looks, for how long after that was said, and how
// often that is said.
constexpr Milliseconds kWatchedInterval{2'000};
constexpr Milliseconds kWatchFor{15'000};
constexpr Milliseconds kWatchAgain{5'000};

std::string skew_text(const std::string& host, int64_t offset_us) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", static_cast<double>(std::abs(offset_us)) / 1e6);
  return "the clock of " + host + " is " + seconds + " s " + (offset_us > 0 ? "behind" : "ahead") +
         "; the times of its workers are corrected";
}

}  // namespace

// An agent that has shown who it is and has joined.
struct RemoteAgents::Agent final : ControlPeer::Owner {
  Agent(RemoteAgents& the_host, const NodeFacts& the_facts, int max_events)
      : host(the_host), facts(the_facts), gate(the_facts, max_events) {}

  void on_message(AgentMessage message) override;
  void on_end(const std::string& why) override {
    if (!why.empty()) host.blame(*this, why);
    host.lose(std::string(facts.id), Coordinator::Lost::kClosed);
  }

  RemoteAgents& host;
  NodeFacts facts;
  EventGate gate;
  std::unique_ptr<ControlPeer> peer;
  SilenceWatch::Place place;
  std::optional<SilenceWatch::Place> farewell;
  int64_t clock_offset_us = 0;
  bool doomed = false;  // it reads too little and is about to be dropped
};

RemoteAgents::RemoteAgents(Loop& loop, const CoordinatorHost::Settings& settings,
                           const CoordinatorHost::Limits& limits, Coordinator& coordinator,
                           Outside outside)
    : loop_(loop),
      settings_(settings),
      limits_(limits),
      coordinator_(coordinator),
      outside_(std::move(outside)),
      read_buffer_(std::make_unique_for_overwrite<char[]>(kReadBuffer)),
      watch_(settings.keep_alive_interval * settings.keep_alive_max_attempt),
      farewells_(limits.goodbye),
      doorkeeper_(loop, {settings.run_id, settings.token, limits.handshake, limits.max_strangers},
                  {[this](std::unique_ptr<ControlPeer> peer, const message::Join& join) {
                     admit(std::move(peer), join);
                   },
                   [this](const std::string& line) { outside_.say(line); }}),
      requests_(loop, [this](const std::string& id, HostMessage message) {
        send(id, std::move(message));
      }) {}

RemoteAgents::~RemoteAgents() = default;

// Not at once: the handshake of a peer that says all in one breath may end in what the giver of the
// socket does not bear inside its call (a reset of the store).
void RemoteAgents::take(UniqueFd socket, std::string_view bytes, const SocketAddress& address) {
  arrivals_.push_back({std::move(socket), std::string(bytes), address});
  outside_.changed();
}

void RemoteAgents::work() {
  std::vector<Arrival> come;
  come.swap(arrivals_);
  for (Arrival& arrival : come)
    doorkeeper_.take(std::move(arrival.socket), arrival.bytes, arrival.address,
                     {read_buffer_.get(), kReadBuffer});
  std::vector<std::string> list;
  list.swap(unread_);
  for (const std::string& id : list) {
    auto it = agents_.find(id);
    if (it == agents_.end() || !it->second->doomed) continue;
    blame(*it->second, "it does not read what it is sent");
    lose(id, Coordinator::Lost::kClosed);
  }
}

void RemoteAgents::Agent::on_message(AgentMessage message) {
  // Some of what follows ends this object, so each case calls one function and returns.
  const Clock::time_point now = Clock::now();
  // That workers are measured does not show that the agent hears us.
  if (!std::holds_alternative<message::Samples>(message)) host.watch_.heard(place, now);
  const std::string id = facts.id;  // some of what follows ends this object
  if (auto* beat = std::get_if<message::Heartbeat>(&message)) {
    host.heartbeat(*this, *beat);
  } else if (auto* notice = std::get_if<FailureNotice>(&message)) {
    host.failed(*this, std::move(*notice));
  } else if (auto* outcome = std::get_if<NodeOutcome>(&message)) {
    host.settled(*this, std::move(*outcome));
  } else if (auto* events = std::get_if<message::Events>(&message)) {
    for (EventBody& event : gate.pass(std::move(*events)))
      host.outside_.record(std::move(event));
    host.outside_.changed();
  } else if (auto* request = std::get_if<message::StopRequest>(&message)) {
    request->signal.host = facts.host;
    host.coordinator_.stop_requested(id, request->signal, request->kill, now);
    host.outside_.changed();
  } else if (auto* samples = std::get_if<message::Samples>(&message)) {
    host.measured(*this, std::move(*samples));
  } else if (auto* restart = std::get_if<message::RestartRequest>(&message)) {
    host.restart(id, restart->who);
  } else if (auto* evidence = std::get_if<message::EvidenceRequest>(&message)) {
    host.outside_.evidence(evidence->why);
  } else if (host.answered(id, message)) {
    return;
  } else if (std::holds_alternative<message::Leave>(message)) {
    host.lose(id, Coordinator::Lost::kLeft);
  } else if (std::holds_alternative<message::Goodbye>(message)) {
    RemoteAgents& its_host = host;
    its_host.remove(id);
    its_host.coordinator_.goodbye(id, now);
    its_host.outside_.changed();
  } else {
    host.blame(*this, "it sent " + std::string(message_name(message)) + " after it had joined");
    host.lose(id, Coordinator::Lost::kClosed);
  }
}

void RemoteAgents::admit(std::unique_ptr<ControlPeer> peer, const message::Join& join) {
  const NodeFacts& facts = join.facts;
  if (settings_.coordinator.terms.max_nodes == 1)
    return turn_away(std::move(peer), {"the job at this endpoint has one node alone", false});
  if (facts.id == settings_.coordinator.host_id)
    return turn_away(std::move(peer), {"another node has this node's id", true});
  const std::string seen = peer->address().host();
  const std::string ours = peer->ours().host();
  // An agent that noticed a cut connection before we did: its new one replaces the old.
  std::unique_ptr<Agent>& agent = agents_[facts.id];
  if (agent) forget(*agent);
  if (!agent || agent->facts.workers != facts.workers)
    agent = std::make_unique<Agent>(*this, facts, limits_.max_events_per_worker);
  agent->peer = std::move(peer);
  agent->doomed = false;
  agent->facts = facts;
  agent->peer->set_owner(agent.get());
  agent->place = watch_.add(facts.id, Clock::now());
  count_addresses(*agent, 1);
  if (!watch_timer_) arm_watch();
  note_clock(*agent, join.clock_offset_us);
  coordinator_.join(facts, seen, ours, Clock::now());
  outside_.changed();
}

void RemoteAgents::heartbeat(Agent& agent, const message::Heartbeat& heartbeat) {
  note_clock(agent, heartbeat.clock_offset_us);
  send_encoded(agent, encode(HostMessage(message::HeartbeatEcho{heartbeat.sent_us, unix_us()})));
  if (agent.doomed) outside_.changed();
}

void RemoteAgents::note_clock(Agent& agent, int64_t offset_us) {
  agent.clock_offset_us = offset_us;
  if (std::abs(offset_us) <= kMaxSkewUs || skewed_.size() >= kMaxSkewed) return;
  if (!skewed_.insert(agent.facts.id).second) return;
  outside_.record(event::Trouble{"clock", skew_text(agent.facts.host, offset_us)});
  outside_.changed();
}

// What an agent says of its failures is put on our clock, and is about its own workers alone.
void RemoteAgents::failed(Agent& agent, FailureNotice notice) {
  event::FailureFound& failure = notice.preliminary;
  if (agent.gate.running(notice.attempt) && !agent.gate.own(failure)) {
    blame(agent, "it reported the failure of a rank that is not its own");
    return lose(std::string(agent.facts.id), Coordinator::Lost::kClosed);
  }
  if (failure.time_us != 0) failure.time_us += agent.clock_offset_us;
  failure.time_us = time_of_news_us(failure.time_us, unix_us());
  coordinator_.failed(agent.facts.id, notice, Clock::now());
  outside_.changed();
}

void RemoteAgents::settled(Agent& agent, NodeOutcome outcome) {
  bool own_ones = true;
  auto take = [&](event::FailureFound& failure) {
    if (agent.gate.running(outcome.attempt)) own_ones &= agent.gate.own(failure);
    if (failure.time_us != 0) failure.time_us += agent.clock_offset_us;
  };
  if (outcome.root) take(*outcome.root);
  for (event::FailureFound& other : outcome.others)
    take(other);
  for (event::FailureFound& suspect : outcome.suspects)
    take(suspect);
  if (!own_ones) {
    blame(agent, "it reported the failure of a rank that is not its own");
    return lose(std::string(agent.facts.id), Coordinator::Lost::kClosed);
  }
  if (outcome.early) {
    coordinator_.ending(agent.facts.id, outcome, Clock::now());
  } else {
    coordinator_.settled(agent.facts.id, outcome, Clock::now());
  }
  outside_.changed();
}

// Whether it belonged to a request, and so was heard.
bool RemoteAgents::answered(const std::string& id, const AgentMessage& message) {
  const char* wrong = nullptr;
  if (auto* piece = std::get_if<message::Piece>(&message)) {
    wrong = requests_.take(id, *piece);
  } else if (auto* answer = std::get_if<message::Answer>(&message)) {
    wrong = requests_.take(id, *answer);
  } else if (auto* end = std::get_if<message::AnswerEnd>(&message)) {
    wrong = requests_.take(id, *end);
  } else if (auto* broken = std::get_if<message::AnswerBroken>(&message)) {
    wrong = requests_.take(id, *broken);
  } else {
    return false;
  }
  if (wrong == nullptr) return true;
  blame(*agents_.at(id), wrong);
  lose(id, Coordinator::Lost::kClosed);
  return true;
}

// Those of its own ranks, with their times on our clock.
void RemoteAgents::measured(const Agent& agent, message::Samples samples) {
  if (!outside_.samples) return;
  std::erase_if(samples.samples, [&](const RankSample& sample) {
    return !agent.gate.has(samples.attempt, sample.rank);
  });
  if (samples.samples.empty()) return;
  for (RankSample& sample : samples.samples) {
    sample.time_us += agent.clock_offset_us;
    if (sample.last_output_us != 0) sample.last_output_us += agent.clock_offset_us;
    if (sample.heartbeat_us != 0) sample.heartbeat_us += agent.clock_offset_us;
    if (sample.alive_us != 0) sample.alive_us += agent.clock_offset_us;
  }
  outside_.samples(samples.attempt, std::move(samples.samples));
}

void RemoteAgents::restart(const std::string& id, const std::string& who) {
  const std::string refusal = coordinator_.restart_requested(id, who, Clock::now());
  if (!refusal.empty()) send(id, message::RestartRefused{refusal});
  outside_.changed();
}

// Of many nodes each tells so much less often that all together tell a thousand times a second.
void RemoteAgents::watch_samples() {
  const Clock::time_point now = Clock::now();
  if (agents_.empty() || (watched_ && now - *watched_ < kWatchAgain)) return;
  watched_ = now;
  const auto every = std::clamp(Milliseconds(agents_.size()), kWatchedInterval, kSampleInterval);
  send_all(message::Watch{static_cast<int>(every.count()), static_cast<int>(kWatchFor.count())});
  outside_.changed();
}

void RemoteAgents::blame(const Agent& agent, const std::string& why) {
  doorkeeper_.blame(agent.peer->address(), why);
}

void RemoteAgents::lose(const std::string& id, Coordinator::Lost how) {
  remove(id);
  coordinator_.lost(id, how, Clock::now());
  outside_.changed();
}

void RemoteAgents::said_goodbye(const std::string& id) {
  remove(id);
  coordinator_.goodbye(id, Clock::now());
  outside_.changed();
}

void RemoteAgents::remove(const std::string& id) {
  auto it = agents_.find(id);
  if (it == agents_.end()) return;
  forget(*it->second);
  agents_.erase(it);
}

// Before it goes, or gets another connection.
void RemoteAgents::forget(Agent& agent) {
  requests_.gone(agent.facts.id);
  count_addresses(agent, -1);
  watch_.remove(agent.place);
  if (agent.farewell) farewells_.remove(*agent.farewell);
  agent.farewell.reset();
}

void RemoteAgents::count_addresses(const Agent& agent, int by) {
  const Result<SocketAddress> told = SocketAddress::parse(agent.facts.address, 0);
  for (const std::string& address :
       {agent.peer->address().host(), told ? told->host() : std::string()}) {
    if (!address.empty() && (addresses_[address] += by) <= 0) addresses_.erase(address);
  }
}

void RemoteAgents::arm_watch() {
  watch_timer_.reset();
  const auto next = watch_.next();
  if (!next) return;
  const Clock::time_point now = Clock::now();
  // With many agents somebody's time is always near; a tenth of the interval is soon enough.
  watch_at_ = std::max(*next, now + settings_.keep_alive_interval / 10);
  watch_timer_ = Timer::start(loop_, std::chrono::ceil<Milliseconds>(watch_at_ - now),
                              [this] { on_silence(); });
}

void RemoteAgents::on_silence() {
  const Clock::time_point now = Clock::now();
  if (now - watch_at_ > settings_.keep_alive_interval / 2) {
    // We ourselves were away (stopped, or the machine was): what the agents sent meanwhile lies in
    // the sockets and is read before this timer comes again.
    watch_at_ = now + settings_.keep_alive_interval / 2;
    watch_timer_ = Timer::start(loop_, settings_.keep_alive_interval / 2, [this] { on_silence(); });
    return;
  }
  for (const std::string& id : watch_.silent(now))
    lose(id, Coordinator::Lost::kSilent);
  arm_watch();
}

void RemoteAgents::send(const std::string& id, HostMessage message) {
  send_frame(id, encode(std::move(message)));
}

void RemoteAgents::send_frame(const std::string& id, std::string_view frame) {
  // It may just have been lost, which the coordinator then knows.
  if (auto it = agents_.find(id); it != agents_.end()) send_encoded(*it->second, frame);
}

void RemoteAgents::assign(const std::string& id, const Assignment& assignment) {
  auto it = agents_.find(id);
  if (it == agents_.end()) return;
  it->second->gate.assigned(assignment);
  requests_.placed(assignment.attempt, assignment.node, id);
  send_encoded(*it->second, encode(HostMessage(assignment)));
}

// No worker is left that needs the store, so nobody is waited for without end.
void RemoteAgents::end(const std::string& id, const JobEnd& end) {
  auto it = agents_.find(id);
  if (it == agents_.end()) return;
  Agent& agent = *it->second;
  if (!agent.farewell) agent.farewell = farewells_.add(id, Clock::now());
  if (!farewell_timer_)
    farewell_timer_ = Timer::start(loop_, limits_.goodbye, [this] { on_farewell_time(); });
  send_encoded(agent, encode(HostMessage(end)));
}

void RemoteAgents::on_farewell_time() {
  const Clock::time_point now = Clock::now();
  for (const std::string& id : farewells_.silent(now)) {
    auto it = agents_.find(id);
    if (it == agents_.end()) continue;
    blame(*it->second, "it did not say goodbye");
    lose(id, Coordinator::Lost::kClosed);
  }
  farewell_timer_.reset();
  if (const auto next = farewells_.next())
    farewell_timer_ = Timer::start(loop_, std::chrono::ceil<Milliseconds>(*next - now) + kTick,
                                   [this] { on_farewell_time(); });
}

void RemoteAgents::send_all(HostMessage message) {
  const std::string frame = encode(std::move(message));
  for (auto& [id, agent] : agents_)
    send_encoded(*agent, frame);
}

void RemoteAgents::send_encoded(Agent& agent, std::string_view frame) {
  if (agent.doomed) return;
  agent.peer->send_encoded(frame);
  if (agent.peer->unsent() <= limits_.max_unsent) return;
  agent.doomed = true;
  unread_.push_back(agent.facts.id);
}

void RemoteAgents::refuse(const action::Refuse& refuse) {
  auto it = agents_.find(refuse.id);
  if (it == agents_.end()) return;
  std::unique_ptr<Agent> agent = std::move(it->second);
  forget(*agent);
  agents_.erase(it);
  turn_away(std::move(agent->peer), {refuse.reason, refuse.final});
}

// It keeps its connection until it has read why.
void RemoteAgents::turn_away(std::unique_ptr<ControlPeer> peer, const message::Refuse& refuse) {
  doorkeeper_.blame(peer->address(), "refused: " + refuse.reason);
  doorkeeper_.send_off(std::move(peer), refuse);
}

}  // namespace muster
