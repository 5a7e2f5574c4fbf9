// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/remote_link.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <variant>

#include "supervisor/job/duration_text.h"

namespace muster {

namespace {

// Unsent bytes at which events wait in their queue.
constexpr size_t kMaxUnsentForEvents = size_t{256} << 10;
constexpr Milliseconds kRetry{100};
// How long the coordinator may take to close after our last word.
constexpr Milliseconds kPartingPatience{1'000};
constexpr int64_t kSkewWorthALine = 1'000'000;

std::string skew_text(int64_t offset_us) {
  return "this node's clock is " + duration_text(std::abs(offset_us)) +
         (offset_us > 0 ? " behind" : " ahead of") + " the coordinator's";
}

}  // namespace

RemoteLink::RemoteLink(Loop& loop, Settings settings, Approach::Introduction introduction,
                       Approach::Joined joined, Callbacks callbacks)
    : loop_(loop),
      settings_(std::move(settings)),
      introduction_(std::move(introduction)),
      target_(joined.target),
      callbacks_(std::move(callbacks)),
      desk_(loop,
            {[this](AgentMessage message) { stream_->send(std::move(message)); },
             [this] { return stream_->unsent(); }},
            callbacks_.on_request),
      samples_(loop, {callbacks_.take_samples,
                      [this](message::Samples batch) {
                        if (stream_->unsent() > kMaxUnsentForEvents) return false;
                        stream_->send(std::move(batch));
                        return true;
                      }}),
      events_(introduction_.facts.host) {
  counted_ = joined.welcome.resumed || introduction_.facts.attempt < 0;
  take(std::move(joined));
}

void RemoteLink::take(Approach::Joined joined) {
  stream_ = std::move(joined.stream);
  stream_->set_callbacks({[this](HostMessage message) { on_message(std::move(message)); },
                          [this](const ControlStream::End& end) { broken(end.why); },
                          [this] {
                            send_events();
                            desk_.go_on();
                          }});
  rate_ = {Milliseconds(joined.welcome.heartbeat_ms), joined.welcome.heartbeat_misses};
  heart_ = std::make_unique<Heart>(
      loop_, rate_, [this](int64_t sent_us) { beat(sent_us); },
      [this] { broken("no word for " + duration_text(rate_.patience().count() * 1000)); });
  samples_.resume();
}

void RemoteLink::beat(int64_t sent_us) {
  stream_->send(message::Heartbeat{sent_us, clock_.us()});
}

void RemoteLink::echoed(const message::HeartbeatEcho& echo) {
  heart_->echoed(echo.sent_us);
  clock_.add(echo.sent_us, echo.time_us, unix_us());
  if (skew_told_ || std::abs(clock_.us()) < kSkewWorthALine) return;
  skew_told_ = true;
  callbacks_.on_event(event::Trouble{"clock", skew_text(clock_.us())});
}

// What serves those who look at the job there, and is no part of its course.
bool RemoteLink::on_request_message(HostMessage& message) {
  const char* wrong = nullptr;
  if (auto* request = std::get_if<message::Request>(&message)) {
    wrong = desk_.take(std::move(*request));
  } else if (auto* credit = std::get_if<message::Credit>(&message)) {
    wrong = desk_.take(*credit);
  } else if (auto* cancel = std::get_if<message::Cancel>(&message)) {
    desk_.take(*cancel);
  } else if (auto* watch = std::get_if<message::Watch>(&message)) {
    samples_.watch(*watch);
  } else if (auto* refused = std::get_if<message::RestartRefused>(&message)) {
    callbacks_.on_say("no restart: " + refused->why);
  } else if (auto* save = std::get_if<message::SaveEvidence>(&message)) {
    // Whoever has no part in it has nothing to show.
    if (save->attempt == introduction_.facts.attempt) callbacks_.on_evidence(save->why);
  } else {
    return false;
  }
  if (wrong != nullptr) broken(wrong);
  return true;
}

void RemoteLink::on_message(HostMessage message) {
  if (parting_ || on_request_message(message)) return;
  std::visit(
      [this](auto& m) {
        using T = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<T, message::HeartbeatEcho>) {
          echoed(m);
        } else if constexpr (std::is_same_v<T, Assignment>) {
          NodeFacts& facts = introduction_.facts;
          facts.attempt = facts.last_attempt = m.attempt;
          facts.last_restart_count = std::max(facts.last_restart_count, m.restart_count);
          counted_ = true;
          failed_.reset();
          settled_.reset();
          samples_.assigned(m);
          callbacks_.on_assignment(m);
        } else if constexpr (std::is_same_v<T, StopOrder>) {
          stop_request_.reset();
          callbacks_.on_stop(m);
        } else if constexpr (std::is_same_v<T, AttemptVerdict>) {
          if (m.attempt <= judged_) return;  // said again after a break
          if (m.early) return callbacks_.on_verdict(m);
          judged_ = m.attempt;
          if (m.attempt == introduction_.facts.attempt) forget_attempt();
          callbacks_.on_verdict(m);
        } else if constexpr (std::is_same_v<T, JobEnd>) {
          ended_ = true;
          stop_request_.reset();
          callbacks_.on_end(m);
        } else if constexpr (std::is_same_v<T, event::NodesAwaited>) {
          callbacks_.on_awaited(m);
        } else if constexpr (std::is_same_v<T, message::Refuse>) {
          trouble_ = m.reason;
          lost();
        } else {
          broken("it sent a message out of turn");
        }
      },
      message);
}

void RemoteLink::failed(const FailureNotice& notice) {
  failed_ = notice;
  if (stream_ && counted_) stream_->send(notice);
}

// Not said again after a break: the outcome is to come.
void RemoteLink::ending(const NodeOutcome& so_far) {
  if (!stream_ || !counted_) return;
  send_events();
  stream_->send(so_far);
}

void RemoteLink::settled(const NodeOutcome& outcome) {
  settled_ = outcome;
  if (!stream_) return;
  send_events();
  stream_->send(outcome);
  // No verdict comes for what is no longer counted: from now on this node has nothing.
  if (!counted_) forget_attempt();
}

// The coordinator wants no more news of it.
void RemoteLink::forget_attempt() {
  introduction_.facts.attempt = -1;
  failed_.reset();
  settled_.reset();
}

void RemoteLink::repeat_unheard() {
  if (failed_ && counted_) stream_->send(*failed_);
  if (settled_) settled(NodeOutcome(*settled_));
  if (stop_request_) stream_->send(*stop_request_);
  send_events();
}

void RemoteLink::report(const Event& event) {
  if (parting_ || !events_.add(event) || sending_events_) return;
  sending_events_ = true;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    sending_events_ = false;
    send_events();
  });
}

void RemoteLink::send_events() {
  while (stream_ && !events_.empty() && stream_->unsent() < kMaxUnsentForEvents)
    stream_->send(events_.take());
}

bool RemoteLink::request_stop(const event::SignalReceived& signal, bool kill) {
  if (!stream_ || parting_) return false;
  stop_request_ = message::StopRequest{signal, kill};
  stream_->send(*stop_request_);
  return true;
}

std::string RemoteLink::request_restart(const std::string& who) {
  if (!stream_ || parting_) return "the coordinator cannot be reached now";
  stream_->send(message::RestartRequest{who});
  return "";
}

std::string RemoteLink::request_evidence(const std::string& why) {
  if (!stream_ || parting_) return "the coordinator cannot be reached now";
  stream_->send(message::EvidenceRequest{why});
  return "";
}

// The connection is over, in whatever way.
void RemoteLink::disconnect() {
  stream_.reset();
  heart_.reset();
  samples_.pause();
  desk_.hang_up();
}

void RemoteLink::broken(const std::string& why) {
  const Clock::time_point last_known = heart_->last_known();
  trouble_ = why;
  disconnect();
  if (parting_) return parted();
  if (ended_) return;  // it has closed after the end, as it should
  const Clock::time_point now = Clock::now();
  give_up_at_ = now + rate_.patience();
  give_up_timer_ = Timer::start(loop_, rate_.patience(), [this] { lost(); });
  // The coordinator gives us up when it has heard nothing for as long.
  const auto left = std::chrono::duration_cast<Milliseconds>(last_known + rate_.patience() - now);
  cut_off_timer_ = Timer::start(loop_, std::max(left, Milliseconds(0)), [this] {
    callbacks_.on_cut_off("no word from the coordinator at " + settings_.where + " for " +
                          duration_text(rate_.patience().count() * 1000));
  });
  approach();
  callbacks_.on_say("lost the connection to the coordinator at " + settings_.where + ": " + why +
                    "; trying to come back");
}

void RemoteLink::approach() {
  const auto left = std::chrono::duration_cast<Milliseconds>(give_up_at_ - Clock::now());
  approach_ = std::make_unique<Approach>(
      loop_, target_, introduction_, std::min(settings_.patience, left),
      Approach::Callbacks{[this](Approach::Joined joined) { returned(std::move(joined)); },
                          [this](const Approach::Failure& failure) { on_obstacle(failure); }});
}

void RemoteLink::on_obstacle(const Approach::Failure& failure) {
  trouble_ = failure.why;
  switch (failure.obstacle) {
    case Approach::Obstacle::kUnreachable:
    case Approach::Obstacle::kNoAnswer:
    case Approach::Obstacle::kHungUp:
      retry_timer_ = Timer::start(loop_, kRetry, [this] { approach(); });
      return;
    case Approach::Obstacle::kRefused:
    case Approach::Obstacle::kStrange:
    case Approach::Obstacle::kTurnedAway:
    case Approach::Obstacle::kFinal:
      return lost();
  }
}

void RemoteLink::returned(Approach::Joined joined) {
  const message::Welcome welcome = joined.welcome;
  approach_.reset();
  give_up_timer_.reset();
  cut_off_timer_.reset();
  take(std::move(joined));
  counted_ = welcome.resumed || introduction_.facts.attempt < 0;
  repeat_unheard();
  callbacks_.on_say("the connection to the coordinator at " + settings_.where + " is back");
  callbacks_.on_welcome(welcome.spare, welcome.resumed);
}

void RemoteLink::lost() {
  const std::string why = std::move(trouble_);  // we may be dropped in what follows
  disconnect();
  approach_.reset();
  retry_timer_.reset();
  give_up_timer_.reset();
  cut_off_timer_.reset();
  auto on_lost = std::move(callbacks_.on_lost);
  on_lost(why);
}

void RemoteLink::leave() {
  part(message::Leave{});
}

void RemoteLink::close(std::function<void()> on_closed) {
  on_parted_ = std::move(on_closed);
  if (!parting_) {
    part(ended_ ? AgentMessage(message::Goodbye{}) : AgentMessage(message::Leave{}));
  } else if (!stream_) {
    parting_timer_ = Timer::start(loop_, Milliseconds(0), [this] { parted(); });
  }
}

// Says it and waits until the coordinator closes: a connection that we close while something of it
// is unread would be reset, and the last word perhaps lost.
void RemoteLink::part(AgentMessage last_word) {
  send_events();
  parting_ = true;
  samples_.pause();
  desk_.hang_up();
  approach_.reset();
  retry_timer_.reset();
  give_up_timer_.reset();
  cut_off_timer_.reset();
  if (stream_) stream_->send(std::move(last_word));
  parting_timer_ =
      Timer::start(loop_, stream_ ? kPartingPatience : Milliseconds(0), [this] { parted(); });
}

void RemoteLink::parted() {
  parting_timer_.reset();
  disconnect();
  if (auto on_parted = std::exchange(on_parted_, nullptr)) on_parted();
}

}  // namespace muster
