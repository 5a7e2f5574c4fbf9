// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/coordinator_host.h"

#include "loop/interfaces.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/heart.h"
#include "supervisor/rendezvous/remote_agents.h"

namespace muster {

namespace {

constexpr std::string_view kStopKey = "/muster/stop_requested";

// Whom an action is for, null if it is for nobody in particular.
const std::string* addressee(const Action& action) {
  return std::visit(
      [](const auto& a) -> const std::string* {
        if constexpr (requires { a.id; }) {
          return &a.id;
        } else {
          return nullptr;
        }
      },
      action);
}

}  // namespace

struct CoordinatorHost::Impl {
  Impl(Loop& the_loop, Settings the_settings, std::unique_ptr<StoreServer> the_store,
       LocalAgent the_local, Callbacks the_callbacks, const Limits& limits)
      : loop(the_loop),
        settings(std::move(the_settings)),
        store(std::move(the_store)),
        local(std::move(the_local)),
        callbacks(std::move(the_callbacks)),
        coordinator(settings.coordinator, Clock::now()),
        agents(loop, settings, limits, coordinator,
               {[this](EventBody event) { own.push_back(action::Record{std::move(event)}); },
                [this](std::string line) {
                  own.push_back(action::Say{std::move(line)});
                  changed();
                },
                callbacks.on_samples, [this] { changed(); },
                [this](const std::string& why) { save_evidence(why); }}) {}

  void changed();
  void on_posted();
  void arm_wake();
  bool stays(const Action& action) const;
  void perform(const Action& action);
  std::string save_evidence(const std::string& why);
  void perform_here(const Action& action);

  Loop& loop;
  const Settings settings;
  std::unique_ptr<StoreServer> store;
  LocalAgent local;
  Callbacks callbacks;
  Coordinator coordinator;
  std::vector<Action> own;    // what stays here, in its order
  std::string verdict_frame;  // while it is told
  std::shared_ptr<const AttemptVerdict> framed_verdict;
  bool posted = false;
  Owned<Timer> wake;
  Clock::time_point wake_at{};
  std::shared_ptr<bool> alive = std::make_shared<bool>();  // for posted tasks and calls outside
  RemoteAgents agents;
};

bool CoordinatorHost::Impl::stays(const Action& action) const {
  if (const std::string* id = addressee(action)) return *id == settings.coordinator.host_id;
  return std::holds_alternative<action::Record>(action) ||
         std::holds_alternative<action::Say>(action) ||
         std::holds_alternative<action::Closed>(action);
}

// What others are to do goes out at once: their work begins while ours does. What stays here
// (records, lines, the agent in this process) is told from the loop and in its order; so whatever
// others answer is recorded after it.
void CoordinatorHost::Impl::changed() {
  verdict_frame.clear();
  framed_verdict.reset();
  for (Action& action : coordinator.take_actions()) {
    if (stays(action)) {
      own.push_back(std::move(action));
    } else {
      perform(action);
    }
  }
  arm_wake();
  if (posted || (own.empty() && !agents.has_work())) return;
  posted = true;
  loop.post([this, watched = std::weak_ptr<bool>(alive)] {
    if (!watched.expired()) on_posted();
  });
}

void CoordinatorHost::Impl::on_posted() {
  posted = false;
  agents.work();
  std::vector<Action> here;
  here.swap(own);
  const std::weak_ptr<bool> watched = alive;
  for (const Action& action : here) {
    perform_here(action);
    if (watched.expired()) return;
  }
  changed();
}

void CoordinatorHost::Impl::arm_wake() {
  const auto at = coordinator.wake_at();
  if (!at || (wake && wake_at <= *at)) return;  // a call too many does no harm
  wake_at = *at;
  const auto left = std::chrono::ceil<Milliseconds>(wake_at - Clock::now());
  wake = Timer::start(loop, std::max(Milliseconds(0), left), [this] {
    wake.reset();
    coordinator.time(Clock::now());
    changed();
  });
}

void CoordinatorHost::Impl::perform(const Action& action) {
  if (auto* refuse = std::get_if<action::Refuse>(&action)) {
    agents.refuse(*refuse);
  } else if (auto* welcome = std::get_if<action::Welcome>(&action)) {
    agents.send(welcome->id,
                message::Welcome{welcome->spare, welcome->resumed,
                                 static_cast<int>(settings.keep_alive_interval.count()),
                                 settings.keep_alive_max_attempt});
  } else if (std::holds_alternative<action::ResetStore>(action)) {
    if (store) store->reset();
  } else if (auto* assign = std::get_if<action::Assign>(&action)) {
    agents.assign(assign->id, assign->assignment);
  } else if (auto* stop = std::get_if<action::Stop>(&action)) {
    agents.send(stop->id, stop->order);
  } else if (auto* tell = std::get_if<action::Tell>(&action)) {
    // The same for thousands, and long: made once for all that are told together.
    if (std::exchange(framed_verdict, tell->verdict) != tell->verdict)
      verdict_frame = encode(HostMessage(*tell->verdict));
    agents.send_frame(tell->id, verdict_frame);
  } else if (auto* end = std::get_if<action::End>(&action)) {
    agents.end(end->id, end->end);
  } else if (auto* drop = std::get_if<action::Drop>(&action)) {
    agents.remove(drop->id);
  } else if (auto* key = std::get_if<action::SetStopKey>(&action)) {
    if (store) store->set(kStopKey, key->signal);
  } else if (auto* broadcast = std::get_if<action::Broadcast>(&action)) {
    agents.send_all(broadcast->awaited);
  }
}

void CoordinatorHost::Impl::perform_here(const Action& action) {
  if (auto* refuse = std::get_if<action::Refuse>(&action)) {
    local.on_refused(refuse->reason);
  } else if (auto* welcome = std::get_if<action::Welcome>(&action)) {
    local.on_welcome(welcome->resumed);
  } else if (auto* assign = std::get_if<action::Assign>(&action)) {
    local.on_assignment(assign->assignment);
  } else if (auto* stop = std::get_if<action::Stop>(&action)) {
    local.on_stop(stop->order);
  } else if (auto* tell = std::get_if<action::Tell>(&action)) {
    local.on_verdict(*tell->verdict);
  } else if (auto* end = std::get_if<action::End>(&action)) {
    local.on_end(end->end);
  } else if (auto* event = std::get_if<action::Record>(&action)) {
    callbacks.on_record(event->event);
  } else if (auto* say = std::get_if<action::Say>(&action)) {
    callbacks.on_say(say->line);
  } else if (std::holds_alternative<action::Closed>(action)) {
    callbacks.on_closed();
  }
}

// It changes nothing of the job, so the coordinator is not asked.
std::string CoordinatorHost::Impl::save_evidence(const std::string& why) {
  const Coordinator::Phase phase = coordinator.phase();
  if (phase != Coordinator::Phase::kRunning && phase != Coordinator::Phase::kStopping)
    return "no worker runs";
  agents.send_all(message::SaveEvidence{coordinator.attempt(), why});
  loop.post([this, why, watched = std::weak_ptr<bool>(alive)] {
    if (!watched.expired()) local.on_evidence(why);
  });
  changed();
  return "";
}

CoordinatorHost::CoordinatorHost(Loop& loop, Settings settings, std::unique_ptr<StoreServer> store,
                                 LocalAgent local, Callbacks callbacks)
    : CoordinatorHost(loop, std::move(settings), std::move(store), std::move(local),
                      std::move(callbacks), Limits()) {}

CoordinatorHost::CoordinatorHost(Loop& loop, Settings settings, std::unique_ptr<StoreServer> store,
                                 LocalAgent local, Callbacks callbacks, Limits limits)
    : impl_(std::make_unique<Impl>(loop, std::move(settings), std::move(store), std::move(local),
                                   std::move(callbacks), limits)) {
  if (!impl_->store) return;
  impl_->store->set_allow([this](const SocketAddress& peer) { return allows(peer); });
  impl_->store->set_on_stranger(
      [this](UniqueFd socket, const std::string& bytes, const SocketAddress& peer) {
        take(std::move(socket), bytes, peer);
      });
}

CoordinatorHost::~CoordinatorHost() = default;

void CoordinatorHost::join(const NodeFacts& facts) {
  impl_->coordinator.join(facts, "", "", Clock::now());
  impl_->changed();
}

void CoordinatorHost::failed(const FailureNotice& notice) {
  FailureNotice timed = notice;
  timed.preliminary.time_us = time_of_news_us(notice.preliminary.time_us, unix_us());
  impl_->coordinator.failed(impl_->settings.coordinator.host_id, timed, Clock::now());
  impl_->changed();
}

void CoordinatorHost::ending(const NodeOutcome& so_far) {
  impl_->coordinator.ending(impl_->settings.coordinator.host_id, so_far, Clock::now());
  impl_->changed();
}

void CoordinatorHost::settled(const NodeOutcome& outcome) {
  impl_->coordinator.settled(impl_->settings.coordinator.host_id, outcome, Clock::now());
  impl_->changed();
}

void CoordinatorHost::stop_requested(const event::SignalReceived& signal, bool kill) {
  impl_->coordinator.stop_requested(impl_->settings.coordinator.host_id, signal, kill,
                                    Clock::now());
  impl_->changed();
}

std::string CoordinatorHost::restart_requested(const std::string& who) {
  std::string refusal =
      impl_->coordinator.restart_requested(impl_->settings.coordinator.host_id, who, Clock::now());
  impl_->changed();
  return refusal;
}

void CoordinatorHost::hung(const event::FailureFound& found) {
  impl_->coordinator.hung(found, Clock::now());
  impl_->changed();
}

std::string CoordinatorHost::evidence_requested(const std::string& why) {
  return impl_->save_evidence(why);
}

NodeRequests& CoordinatorHost::requests() {
  return impl_->agents.requests();
}

void CoordinatorHost::watch_samples() {
  impl_->agents.watch_samples();
}

void CoordinatorHost::goodbye() {
  impl_->coordinator.goodbye(impl_->settings.coordinator.host_id, Clock::now());
  impl_->changed();
}

void CoordinatorHost::take(UniqueFd socket, std::string_view bytes, const SocketAddress& peer) {
  impl_->agents.take(std::move(socket), bytes, peer);
}

bool CoordinatorHost::allows(const SocketAddress& peer) const {
  const Settings& settings = impl_->settings;
  // The store is only the door of the control connections then.
  if (!settings.coordinator.terms.agent_store) return false;
  if (!settings.store_allow || peer.is_loopback()) return true;
  return impl_->agents.known(peer.host()) || is_local(peer, local_addresses());
}

StoreServer* CoordinatorHost::store() const {
  return impl_->store.get();
}

bool CoordinatorHost::connected(const std::string& id) const {
  return impl_->agents.has(id);
}

size_t CoordinatorHost::agents() const {
  return impl_->agents.size();
}

size_t CoordinatorHost::strangers() const {
  return impl_->agents.strangers();
}

}  // namespace muster
