// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/approach.h"
#include "supervisor/rendezvous/coordinator_line.h"
#include "supervisor/rendezvous/event_queue.h"
#include "supervisor/rendezvous/heart.h"
#include "supervisor/rendezvous/request_desk.h"
#include "supervisor/rendezvous/sample_push.h"

namespace muster {

// The line to a coordinator at the other end of a connection. When that breaks or falls silent, it
// comes back by itself for a bounded time and says again what may have been lost; the coordinator
// does the same.
//
//   joined --closed, reset, silence--> returning --taken again--> joined
//   returning --refused, something else there, time over--> lost
//   joined or returning --too long without a word--> cut off, and goes on
class RemoteLink final : public CoordinatorLine {
 public:
  struct Settings {
    std::string where;         // "node-a:29400", for people
    Milliseconds patience{0};  // for one approach
  };

  // `joined` comes from the first approach, made with `introduction`.
  RemoteLink(Loop& loop, Settings settings, Approach::Introduction introduction,
             Approach::Joined joined, Callbacks callbacks);

  void failed(const FailureNotice& notice) override;
  void ending(const NodeOutcome& so_far) override;
  void settled(const NodeOutcome& outcome) override;
  void report(const Event& event) override;
  bool request_stop(const event::SignalReceived& signal, bool kill) override;
  std::string request_restart(const std::string& who) override;
  std::string request_evidence(const std::string& why) override;
  void leave() override;
  void close(std::function<void()> on_closed) override;

  // What the coordinator's clock says minus what ours says.
  int64_t clock_offset_us() const { return clock_.us(); }

 private:
  void take(Approach::Joined joined);
  void returned(Approach::Joined joined);
  void repeat_unheard();
  void forget_attempt();
  void on_message(HostMessage message);
  bool on_request_message(HostMessage& message);
  void echoed(const message::HeartbeatEcho& echo);
  void beat(int64_t sent_us);
  void disconnect();
  void broken(const std::string& why);
  void approach();
  void on_obstacle(const Approach::Failure& failure);
  void lost();
  void send_events();
  void part(AgentMessage last_word);
  void parted();

  Loop& loop_;
  const Settings settings_;
  Approach::Introduction introduction_;
  const Approach::Target target_;
  Callbacks callbacks_;

  std::unique_ptr<ControlStream> stream_;  // while joined
  std::unique_ptr<Heart> heart_;           // the same
  Heart::Rate rate_;
  ClockOffset clock_;
  bool skew_told_ = false;

  std::unique_ptr<Approach> approach_;  // while returning
  Owned<Timer> retry_timer_;
  Owned<Timer> cut_off_timer_;
  Owned<Timer> give_up_timer_;
  Clock::time_point give_up_at_;
  std::string trouble_;  // why it is not joined

  // Said since the last verdict; said again after a break.
  std::optional<FailureNotice> failed_;
  std::optional<NodeOutcome> settled_;
  std::optional<message::StopRequest> stop_request_;

  RequestDesk desk_;
  SamplePush samples_;
  EventQueue events_;
  bool sending_events_ = false;  // at the end of this turn
  int judged_ = -1;              // the last attempt whose verdict has come
  bool counted_ = true;          // the coordinator has not given this node's attempt up
  bool ended_ = false;           // JobEnd has come
  bool parting_ = false;         // the last word is said: nothing is called back any more
  std::function<void()> on_parted_;
  Owned<Timer> parting_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // guards posted tasks
};

}  // namespace muster
