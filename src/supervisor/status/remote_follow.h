// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "loop/timer.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/log_cursor.h"
#include "supervisor/status/remote_call.h"
#include "supervisor/status/sse_splitter.h"
#include "supervisor/status/status_context.h"

namespace muster {

// Follows the logs of one attempt that another node has, through that node's own follow endpoint,
// and asks again from where it was when the connection was lost. Owned by a follow session.
class RemoteFollow {
 public:
  static constexpr Milliseconds kAskAgain{2'000};

  // From the loop, one message at a time; `offsets` are those of the logs, in their order, after a
  // message that has an id, else null. The owner may drop this in it.
  using OnMessage =
      std::function<void(const SseSplitter::Message& message, const LogCursor* offsets)>;

  // The node cannot be asked, or not any more.
  using OnAway = std::function<void()>;

  // `logs` are of one attempt and node, both streams or one of each rank alike. `query` is the rest
  // of the request, as "&tail=200".
  RemoteFollow(StatusContext& context, std::vector<ChosenLog> logs, LogCursor at, std::string query,
               OnMessage on_message, OnAway on_away);
  ~RemoteFollow();

  void set_paused(bool paused);

 private:
  void ask();
  void ask_later();
  void deliver();
  std::string target() const;

  StatusContext& context_;
  const std::vector<ChosenLog> logs_;
  LogCursor at_;
  const std::string query_;
  OnMessage on_message_;
  OnAway on_away_;
  bool paused_ = false;
  bool over_ = false;       // there is no more, or it cannot be had, now or later
  bool told_away_ = false;  // since it was heard of
  SseSplitter splitter_;
  std::unique_ptr<RemoteCall> call_;
  Owned<Timer> timer_;
  std::shared_ptr<RemoteFollow*> self_;  // null inside once this is gone
};

}  // namespace muster
