// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <utility>

#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/report.h"
#include "supervisor/rendezvous/coordinator_impl.h"
#include "supervisor/rendezvous/master_address.h"
#include "supervisor/rendezvous/ranking.h"

namespace muster {

namespace {

// No worker's exit code tells it.
constexpr int kExitGivenUp = 1;

std::string count_text(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

void Coordinator::Impl::advance(Time now) {
  const bool attempted = phase == Phase::kRunning || phase == Phase::kStopping;
  if (attempted && attempt->over()) {
    conclude(now);
  } else if (phase == Phase::kStopping) {
    tell_early();
  }
  if (phase == Phase::kForming) {
    advance_forming(now);
  } else if (phase == Phase::kRunning) {
    advance_running(now);
  } else if (phase == Phase::kEnding && roster.size() == 0) {
    phase = Phase::kClosed;
    actions.push_back(action::Closed{});
  }
}

void Coordinator::Impl::begin_forming(Time now, size_t enough_nodes) {
  phase = Phase::kForming;
  enough = std::max(enough_nodes, min());
  join_deadline = now + settings.join_timeout;
  call_until.reset();
  loss_said = false;
  order.reset();
  rest_until.reset();
  pace.began(now);
}

void Coordinator::Impl::advance_forming(Time now) {
  if (rest_until && now >= *rest_until) rest_until.reset();
  const bool may_start = !rest_until && !old_workers();
  const bool all_here = ready() >= std::min(enough, max());
  if (all_here && may_start) return start_attempt(now);
  if (ready() >= min()) {
    if (!call_until) call_until = now + settings.last_call;
    if (now >= *call_until && may_start) return start_attempt(now);
    if (!hint_said && !all_here) {
      hint_said = true;
      say("enough nodes are here: --rdzv-conf last_call_timeout=SECONDS sets how long it waits for "
          "more");
    }
  } else {
    // Fewer again: they get the whole time to become enough.
    if (call_until) join_deadline = now + settings.join_timeout;
    call_until.reset();
    if (now >= join_deadline) {
      give_up_waiting();
      return advance(now);
    }
  }
  show_wait(now);
}

void Coordinator::Impl::show_wait(Time now) {
  if (terms().max_nodes == 1 || only_rests()) return;
  using std::chrono::milliseconds;
  auto awaited = [&] {
    const Time until = call_until ? *call_until : join_deadline;
    return awaited_now(roster, terms(), std::chrono::duration_cast<milliseconds>(until - now));
  };
  if (!replaced.empty() && !loss_said) {
    loss_said = true;
    say("waiting for a replacement of " + replaced + ", the workers are stopped");
  }
  if (pace.record_due(now)) record(awaited());
  if (!pace.broadcast_due(now)) return;
  const bool host_here = roster.find(settings.host_id) != nullptr;
  if (roster.size() > (host_here ? 1U : 0U)) actions.push_back(action::Broadcast{awaited()});
}

void Coordinator::Impl::give_up_waiting() {
  const std::string within = " within " + countdown_text(settings.join_timeout) + ": ";
  std::string why =
      replaced.empty() ? "not enough nodes came" : "no replacement of " + replaced + " came";
  why += within + have_text(roster) + "; " + count_text(min() - ready(), "is", "are") + " missing";
  end({Outcome::kFailed, kExitGivenUp, std::move(why), "rendezvous_timeout"});
}

void Coordinator::Impl::start_attempt(Time now) {
  const std::vector<Node*> members = choose_members(roster, settings.host_id, terms().max_nodes);
  std::vector<Assignment> assignments = number_ranks(members);
  const auto [address, port] = master_for(members);
  number = highest_number = std::max(number, highest_number) + 1;
  phase = Phase::kRunning;
  started = now;
  replaced.clear();
  former.clear();
  first_complete.reset();
  uneven_end_said = false;
  host_done = true;  // unless it takes part
  for (auto& [join_order, node] : roster.nodes())
    node.place = -1;

  if (std::string text = uneven_text(members); text != uneven_said) {
    uneven_said = text;
    if (!text.empty()) say(std::move(text));
  }
  actions.push_back(action::ResetStore{});
  std::vector<AttemptRecord::Member> record_of;
  record_of.reserve(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    Node& node = *members[i];
    Assignment& assignment = assignments[i];
    record_of.push_back({node.facts.host, assignment.first_rank, node.facts.workers});
    roster.set_part(node, Part::kWorking);
    if (is_host(node)) host_done = false;
    node.place = node.member = assignment.node;
    assignment.attempt = number;
    assignment.restart_count = restart_count;
    assignment.master_addr = address;
    assignment.master_port = port;
    if (is_host(node)) assignment.nodes = spans_of(members, assignments);
    actions.push_back(action::Assign{node.facts.id, std::move(assignment)});
  }
  attempt.emplace(number, std::move(record_of));
}

std::pair<std::string, int> Coordinator::Impl::master_for(const std::vector<Node*>& members) {
  const Node* host = roster.find(settings.host_id);
  // It stays the same from attempt to attempt, except that a loopback address, good as long as all
  // nodes were on this machine, gives way to what a node from elsewhere can reach.
  if (master_addr.empty() || is_loopback_host(master_addr)) {
    master_addr = host_address(settings, host != nullptr ? host->facts.address : "", members);
  }
  if (terms().agent_store) return {master_addr, settings.store_port};
  // The workers of the first rank host the store.
  const Node& first = *members.front();
  const int port = first.facts.spare_port;
  if (is_host(first)) return {master_addr, port};
  if (!first.facts.address.empty()) return {first.facts.address, port};
  // Who comes over the loopback is on this machine.
  const bool near = first.seen_address.empty() || is_loopback_host(first.seen_address);
  return {near ? master_addr : first.seen_address, port};
}

bool Coordinator::Impl::wants_to_grow() const {
  // Where a member's work is done the job is about to end; then nobody is interrupted any more.
  return ready() > 0 && attempt->size() < max() && !attempt->any_complete();
}

bool Coordinator::Impl::has_finished_guests() const {
  if (settings.exit_barrier.count() == 0 || !first_complete) return false;
  const size_t done = roster.count(Part::kDone);
  if (done != 1) return done > 0;
  auto& nodes = roster.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [this](const auto& entry) {
    return entry.second.part == Part::kDone && !is_host(entry.second);
  });
}

// When those who wait for others that are not done yet are to be named; nullopt: not, or not yet.
// Where the host's own workers are done first, its job says so by ranks.
std::optional<Coordinator::Time> Coordinator::Impl::uneven_end_at() const {
  if (!first_complete || uneven_end_said || host_done) return std::nullopt;
  return *first_complete + std::chrono::microseconds(kUnevenEndUs);
}

void Coordinator::Impl::say_uneven_end(Time now) {
  uneven_end_said = true;
  std::vector<std::string> done, working;
  for (const auto& [join_order, node] : roster.nodes()) {
    std::vector<std::string>* names = nullptr;
    if (node.part == Part::kDone) names = &done;
    if (node.part == Part::kWorking) names = &working;
    if (names != nullptr && names->size() <= kMaxHostsNamed) names->push_back(node.facts.host);
  }
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - *first_complete);
  say("finished: " + (done.empty() ? "nodes that are gone" : join_names(done)) +
      "; still running after " + duration_text(since.count()) + ": " + join_names(working));
}

void Coordinator::Impl::advance_running(Time now) {
  if (auto at = uneven_end_at(); at && now >= *at) say_uneven_end(now);
  if (wants_to_grow() && now >= started + settings.grow_every) {
    auto& nodes = roster.nodes();
    auto newcomer = std::find_if(nodes.begin(), nodes.end(), [](const auto& entry) {
      return entry.second.part == Part::kWaiting;
    });
    return stop_members(StopReason::kMembership, SIGTERM, false,
                        newcomer->second.facts.host + " joined");
  }
  if (!has_finished_guests() || now < *first_complete + settings.exit_barrier) return;
  for (auto& [join_order, node] : roster.nodes()) {
    if (node.part != Part::kDone || is_host(node)) continue;
    sent_home = true;
    send_home(node, {Outcome::kSucceeded, 0, ""});
  }
}

void Coordinator::Impl::stop_members(StopReason reason, int signal, bool kill,
                                     const std::string& why, const std::string& hung_ranks) {
  phase = Phase::kStopping;
  order = StopOrder{attempt->number(), signal, reason, kill, why, hung_ranks};
  if (reason != StopReason::kFailure) attempt->stop_ordered();
  for (auto& [join_order, node] : roster.nodes()) {
    if (node.part != Part::kWorking) continue;
    // Who told of a failure is stopping its workers already.
    if (reason == StopReason::kFailure && attempt->has_failed(node.member)) continue;
    actions.push_back(action::Stop{node.facts.id, *order});
  }
}

void Coordinator::Impl::end(JobEnd the_end) {
  phase = Phase::kEnding;
  job_end = std::move(the_end);
  attempt.reset();
  for (auto& [join_order, node] : roster.nodes()) {
    if (node.part == Part::kWaiting) send_home(node, job_end);
  }
}

// Never one that still has workers: those of kClearing follow when they have settled.
void Coordinator::Impl::send_home(Node& node, const JobEnd& the_end) {
  roster.set_part(node, Part::kHome);
  node.end = the_end;
  actions.push_back(action::End{node.facts.id, the_end});
}

}  // namespace muster
