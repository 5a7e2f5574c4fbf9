// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/rendezvous.h"

#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "loop/check.h"
#include "store/server.h"
#include "supervisor/cli/rendezvous_planner.h"
#include "supervisor/cli/store_place.h"
#include "supervisor/rendezvous/forwarder.h"
#include "supervisor/rendezvous/host_line.h"
#include "supervisor/rendezvous/make_discovery.h"
#include "supervisor/rendezvous/remote_link.h"
#include "supervisor/rendezvous/search.h"

namespace muster {

namespace {

constexpr int kExitLost = 1;
constexpr char kCoordinatorLost[] = "coordinator_lost";  // event::JobEnded::kind
// One dead address among several must not eat the whole time.
constexpr Milliseconds kMaxPatience{5'000};

}  // namespace

// searching --found, ours--> joined (hosting) --office lost--> lost
// searching --found, taken--> joined --coordinator gone--> lost
// searching --time over--> over
// lost --nothing runs here--> searching where another can be elected, else over
// joined --JobEnd--> over; the line lives on for the goodbye
struct Rendezvous::Impl {
  enum class Stage { kIdle, kSearching, kJoined, kLost, kOver };

  Impl(Loop& the_loop, const LaunchPlan& the_plan, NodeFacts the_facts, Outside the_outside)
      : loop(the_loop),
        plan(the_plan),
        facts(std::move(the_facts)),
        outside(std::move(the_outside)) {}

  Result<void> build();
  Result<void> build_alone();
  Result<std::unique_ptr<StoreServer>> listen(const std::string& address, int port);
  Discovery::Callbacks discovery_callbacks();
  CoordinatorLine::Callbacks line_callbacks();

  void search();
  void host(Discovery::Found found);
  void joined(Approach::Joined joined, const std::string& where);
  void welcomed(bool spare, bool resumed);
  void assigned(const Assignment& assignment);
  void stop_ordered(const StopOrder& order);
  void stop_own_workers(StopReason reason, const std::string& why);
  void lost(const std::string& why);
  void after_loss();
  void settled(const NodeOutcome& outcome);
  void go_on();
  void end(const JobEnd& end);
  void finish(const std::function<void()>& on_closed);
  void later(std::function<void()> task);

  Loop& loop;
  const LaunchPlan& plan;
  NodeFacts facts;
  Outside outside;
  Stage stage = Stage::kIdle;
  std::unique_ptr<StoreServer> own_store;  // of one node alone, until join()
  std::unique_ptr<Discovery> discovery;    // null for one node alone
  std::unique_ptr<Search> searching;
  std::unique_ptr<CoordinatorLine> line;
  HostLine* hosted = nullptr;  // `line`, while the coordinator is here
  Forwarder forwarder;         // goes before the line
  std::string where;           // the coordinator, for people

  std::optional<int> running;  // the attempt that the job has here and has not settled
  bool stopping = false;       // it has been told to stop
  // Came while the job is still busy with the attempt before (this node had been cut off).
  std::optional<Assignment> held;
  std::optional<JobEnd> held_end;
  std::string loss;    // why the coordinator is lost
  int stop_asked = 0;  // the first stop signal that was passed on from here
  std::shared_ptr<bool> alive = std::make_shared<bool>();  // guards posted tasks
};

Result<void> Rendezvous::Impl::build() {
  const RendezvousPlan& rendezvous = plan.rendezvous;
  if (facts.id.empty()) facts.id = random_uuid();
  facts.address.clear();
  facts.endpoint_host.clear();
  if (!rendezvous.several_nodes()) return build_alone();
  facts.address = rendezvous.local_addr;
  // Where somebody is elected, or a file leads to it, the endpoint is not the coordinator's place.
  if (rendezvous.meeting == Meeting::kStatic || rendezvous.meeting == Meeting::kDynamic) {
    facts.endpoint_host = rendezvous.endpoint_host;
  }
  auto made = make_discovery(
      loop, plan, facts, [this](const std::string& at, int port) { return listen(at, port); },
      discovery_callbacks());
  if (!made) return made.error();
  discovery = std::move(*made);
  return {};
}

// Nobody has to be found, and a port that is taken is an error at once.
Result<void> Rendezvous::Impl::build_alone() {
  if (!plan.agent_store) return {};
  auto store = listen(plan.store_bind, plan.master_port);
  if (!store) return store.error();
  own_store = std::move(*store);
  return {};
}

Result<std::unique_ptr<StoreServer>> Rendezvous::Impl::listen(const std::string& address,
                                                              int port) {
  StoreServer::Callbacks callbacks;
  callbacks.on_trouble = [this](const std::string& message) {
    constexpr std::string_view kSubject = "store: ";
    const bool named = message.starts_with(kSubject);
    outside.on_record(event::Trouble{"store", named ? message.substr(kSubject.size()) : message});
  };
  auto store = StoreServer::listen(loop, address, port, std::move(callbacks));
  // Agents may come before the coordinator is there to take them.
  if (store) (*store)->hold_strangers();
  return store;
}

Discovery::Callbacks Rendezvous::Impl::discovery_callbacks() {
  Discovery::Callbacks callbacks;
  callbacks.on_found = [this](Discovery::Found found) {
    if (searching) searching->found(std::move(found));
  };
  callbacks.on_step = [this](const std::string& step) {
    if (searching) return searching->at_step(step);
    // Trouble with the office that this node holds.
    if (hosted != nullptr && stage == Stage::kJoined) outside.job.on_say(step);
  };
  callbacks.on_failed = [this](const Error& error) {
    if (searching) searching->failed(error);
  };
  callbacks.on_deposed = [this](const std::string& why) {
    // Once the job is over the office only serves the goodbyes.
    if (hosted == nullptr || stage != Stage::kJoined) return;
    lost("this node is the coordinator no more: " + why);
  };
  return callbacks;
}

CoordinatorLine::Callbacks Rendezvous::Impl::line_callbacks() {
  CoordinatorLine::Callbacks callbacks;
  callbacks.on_assignment = [this](const Assignment& assignment) { assigned(assignment); };
  callbacks.on_stop = [this](const StopOrder& order) { stop_ordered(order); };
  callbacks.on_verdict = outside.job.on_verdict;
  callbacks.on_end = [this](const JobEnd& job_end) { end(job_end); };
  callbacks.on_evidence = outside.job.on_evidence;
  callbacks.on_awaited = outside.job.on_event;
  callbacks.on_welcome = [this](bool spare, bool resumed) { welcomed(spare, resumed); };
  callbacks.on_cut_off = [this](const std::string& why) {
    stop_own_workers(StopReason::kCoordinatorLost, why);
  };
  callbacks.on_lost = [this](const std::string& why) {
    lost("lost the coordinator at " + where + ": " + why);
  };
  callbacks.on_say = outside.job.on_say;
  callbacks.on_event = outside.job.on_event;
  callbacks.on_request = outside.on_request;
  callbacks.take_samples = outside.take_samples;
  return callbacks;
}

void Rendezvous::Impl::search() {
  stage = Stage::kSearching;
  facts.attempt = -1;
  where = meeting_point(plan.rendezvous);
  Search::Callbacks callbacks;
  callbacks.on_hosting = [this](Discovery::Found found) {
    searching.reset();
    host(std::move(found));
  };
  callbacks.on_joined = [this](Approach::Joined approached, const std::string& at) {
    searching.reset();
    joined(std::move(approached), at);
  };
  callbacks.on_given_up = [this](const std::string& why, const std::string& kind) {
    searching.reset();
    end({Outcome::kFailed, kExitLost, why, loss.empty() ? kind : kCoordinatorLost});
  };
  callbacks.on_say = outside.job.on_say;
  const RendezvousPlan& rendezvous = plan.rendezvous;
  searching = std::make_unique<Search>(
      loop, *discovery,
      Search::Settings{where, rendezvous.join_timeout,
                       std::min(rendezvous.read_timeout, kMaxPatience)},
      Approach::Introduction{plan.run_id, rendezvous.token, facts}, std::move(callbacks));
}

void Rendezvous::Impl::host(Discovery::Found found) {
  stage = Stage::kJoined;
  where = "this node";
  auto own = std::make_unique<HostLine>(loop, plan, facts, std::move(found), line_callbacks(),
                                        HostLine::Watchers{outside.on_record, outside.on_samples});
  hosted = own.get();
  line = std::move(own);
}

void Rendezvous::Impl::joined(Approach::Joined approached, const std::string& at) {
  stage = Stage::kJoined;
  where = at;
  const message::Welcome welcome = approached.welcome;
  line = std::make_unique<RemoteLink>(
      loop, RemoteLink::Settings{where, std::min(plan.rendezvous.read_timeout, kMaxPatience)},
      Approach::Introduction{plan.run_id, plan.rendezvous.token, facts}, std::move(approached),
      line_callbacks());
  welcomed(welcome.spare, welcome.resumed);
}

void Rendezvous::Impl::welcomed(bool spare, bool resumed) {
  if (!resumed) stop_own_workers(StopReason::kMembership, "this node had been given up");
  if (!spare) return;
  outside.job.on_say("the job at " + where +
                     " has all the nodes it takes: this one is a spare until one is lost");
}

void Rendezvous::Impl::assigned(const Assignment& assignment) {
  if (stage != Stage::kJoined) return;
  facts.last_attempt = std::max(facts.last_attempt, assignment.attempt);
  facts.last_restart_count = std::max(facts.last_restart_count, assignment.restart_count);
  if (running) {
    held = assignment;
    return;
  }
  running = assignment.attempt;
  stopping = false;
  outside.job.on_assignment(assignment);
}

void Rendezvous::Impl::stop_ordered(const StopOrder& order) {
  if (held && held->attempt == order.attempt) {
    held.reset();
    NodeOutcome nothing;
    nothing.attempt = order.attempt;
    return line->settled(nothing);
  }
  stopping = true;
  outside.job.on_stop(order);
}

void Rendezvous::Impl::stop_own_workers(StopReason reason, const std::string& why) {
  if (!running || stopping) return;
  stopping = true;
  outside.job.on_stop({*running, SIGTERM, reason, false, why});
}

// The coordinator is gone for good, or this node's own office is.
void Rendezvous::Impl::lost(const std::string& why) {
  stage = Stage::kLost;
  loss = why;
  held.reset();
  hosted = nullptr;
  line.reset();
  if (!running) return after_loss();
  stop_own_workers(StopReason::kCoordinatorLost, loss);
}

void Rendezvous::Impl::after_loss() {
  if (stage != Stage::kLost) return;
  // Whether the coordinator ever heard of it or not, this node was told to stop.
  if (stop_asked != 0) return end({Outcome::kStopped, 128 + stop_asked, loss});
  if (!discovery || !discovery->can_replace_coordinator()) {
    return end({Outcome::kFailed, kExitLost, loss, kCoordinatorLost});
  }
  search();
  outside.job.on_say(loss + "; looking for the next one");
}

void Rendezvous::Impl::settled(const NodeOutcome& outcome) {
  running.reset();
  if (line) line->settled(outcome);
  if (stage == Stage::kLost) return later([this] { after_loss(); });
  if (held || held_end) later([this] { go_on(); });
}

// With what came meanwhile.
void Rendezvous::Impl::go_on() {
  if (running) return;
  if (held_end) return end(*std::exchange(held_end, std::nullopt));
  if (held) assigned(*std::exchange(held, std::nullopt));
}

void Rendezvous::Impl::end(const JobEnd& job_end) {
  stage = Stage::kOver;
  held.reset();
  if (running) {
    held_end = job_end;
    return stop_own_workers(StopReason::kMembership, "the job has ended without this node");
  }
  auto on_end = outside.job.on_end;
  on_end(job_end);
}

void Rendezvous::Impl::later(std::function<void()> task) {
  loop.post([task = std::move(task), guard = std::weak_ptr<bool>(alive)] {
    if (!guard.expired()) task();
  });
}

// Everybody who needs this node has said goodbye.
void Rendezvous::Impl::finish(const std::function<void()>& on_closed) {
  hosted = nullptr;
  line.reset();
  if (discovery && discovery->resign(on_closed)) return;
  on_closed();
}

Rendezvous::Rendezvous(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Rendezvous::~Rendezvous() = default;

Result<std::unique_ptr<Rendezvous>> Rendezvous::create(Loop& loop, const LaunchPlan& plan,
                                                       NodeFacts facts, Outside outside) {
  auto impl = std::make_unique<Impl>(loop, plan, std::move(facts), std::move(outside));
  if (Result<void> built = impl->build(); !built) return built.error();
  return std::unique_ptr<Rendezvous>(new Rendezvous(std::move(impl)));
}

void Rendezvous::join() {
  MUST(impl_->stage == Impl::Stage::kIdle);
  if (impl_->discovery) return impl_->search();
  Discovery::Found found;
  found.store = std::move(impl_->own_store);
  impl_->host(std::move(found));
}

void Rendezvous::failed(const FailureNotice& notice) {
  if (impl_->line) impl_->line->failed(notice);
}

void Rendezvous::ending(const NodeOutcome& so_far) {
  if (impl_->line) impl_->line->ending(so_far);
}

void Rendezvous::settled(const NodeOutcome& outcome) {
  impl_->settled(outcome);
}

void Rendezvous::report(const Event& event) {
  if (impl_->line) impl_->line->report(event);
}

bool Rendezvous::request_stop(const event::SignalReceived& signal, bool kill) {
  if (impl_->stage != Impl::Stage::kJoined) return false;
  if (impl_->stop_asked == 0) impl_->stop_asked = signal.signal;
  return impl_->line->request_stop(signal, kill);
}

std::string Rendezvous::request_restart(const std::string& who) {
  if (impl_->stage != Impl::Stage::kJoined) return "there is no coordinator to ask now";
  return impl_->line->request_restart(who);
}

std::string Rendezvous::request_evidence(const std::string& why) {
  if (impl_->stage != Impl::Stage::kJoined)
    return impl_->running ? "there is no coordinator to ask now" : "no worker runs";
  return impl_->line->request_evidence(why);
}

void Rendezvous::leave() {
  impl_->searching.reset();
  impl_->stage = Impl::Stage::kOver;
  if (impl_->line) impl_->line->leave();
}

void Rendezvous::close(std::function<void()> on_closed) {
  impl_->searching.reset();
  impl_->stage = Impl::Stage::kOver;
  auto finish = [impl = impl_.get(), on_closed = std::move(on_closed)] { impl->finish(on_closed); };
  if (impl_->line) return impl_->line->close(finish);
  impl_->later(finish);
}

StoreServer* Rendezvous::store() const {
  if (impl_->own_store) return impl_->own_store.get();
  return impl_->hosted != nullptr ? impl_->hosted->store() : nullptr;
}

bool Rendezvous::hosting() const {
  return impl_->hosted != nullptr;
}

bool Rendezvous::forward(int attempt, int node, std::unique_ptr<HttpExchange>& exchange) {
  if (!hosting()) return false;
  CoordinatorHost& host = impl_->hosted->host();
  const std::string agent = host.requests().agent_at(attempt, node);
  if (!host.connected(agent)) return false;
  impl_->forwarder.forward(
      std::move(exchange), [&](RemoteQuestion question, RemoteRequest::Callbacks callbacks) {
        return host.requests().start(agent, std::move(question), std::move(callbacks));
      });
  return true;
}

void Rendezvous::hung(const event::FailureFound& found) {
  if (hosting()) impl_->hosted->host().hung(found);
}

void Rendezvous::watch_samples() {
  if (hosting()) impl_->hosted->host().watch_samples();
}

}  // namespace muster
