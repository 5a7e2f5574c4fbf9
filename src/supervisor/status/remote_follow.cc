// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/remote_follow.h"

#include <set>
#include <string>
#include <utility>

#include "supervisor/cli/ranges.h"

namespace muster {

RemoteFollow::RemoteFollow(StatusContext& context, std::vector<ChosenLog> logs, LogCursor at,
                           std::string query, OnMessage on_message, OnAway on_away)
    : context_(context),
      logs_(std::move(logs)),
      at_(std::move(at)),
      query_(std::move(query)),
      on_message_(std::move(on_message)),
      on_away_(std::move(on_away)),
      self_(std::make_shared<RemoteFollow*>(this)) {
  ask();
}

RemoteFollow::~RemoteFollow() {
  *self_ = nullptr;
}

std::string RemoteFollow::target() const {
  std::vector<int> ranks;
  std::set<Stream> streams;
  for (const ChosenLog& log : logs_) {
    if (ranks.empty() || ranks.back() != log.rank) ranks.push_back(log.rank);
    streams.insert(log.stream);
  }
  std::string names;
  for (Stream stream : streams)
    names.append(names.empty() ? "" : ",").append(stream_name(stream));
  return "/api/v1/follow?attempt=" + std::to_string(at_.attempt) +
         "&ranks=" + format_ranges(std::move(ranks)) + "&streams=" + names + query_ +
         "&cursor=" + encode_cursor(at_);
}

void RemoteFollow::ask() {
  timer_.reset();
  splitter_ = {};
  RemoteCall::Callbacks callbacks;
  callbacks.on_head = [this](int status, const HttpHeaders&) {
    // An answer that is no stream says that these logs cannot be had there.
    told_away_ = false;
    if (status == 200) return;
    over_ = true;
    ask_later();
  };
  callbacks.on_piece = [this](std::string_view piece) {
    splitter_.add(piece);
    deliver();
  };
  callbacks.on_end = [this] { ask_later(); };
  callbacks.on_lost = [this] { ask_later(); };
  call_ = RemoteCall::start(context_.loop, context_.source, at_.attempt, logs_.front().node,
                            target(), std::move(callbacks));
  if (call_ && paused_) call_->set_paused(true);
  if (!call_) ask_later();
}

// Nobody comes back once the run is over.
void RemoteFollow::ask_later() {
  call_.reset();
  if (!over_ && context_.source.live() && !context_.source.state().end) {
    timer_ = Timer::start(context_.loop, kAskAgain, [this] { ask(); });
  }
  if (std::exchange(told_away_, true)) return;
  context_.loop.post([self = self_] {
    if (*self != nullptr) (*self)->on_away_();
  });
}

void RemoteFollow::deliver() {
  const std::shared_ptr<RemoteFollow*> self = self_;
  while (std::optional<SseSplitter::Message> message = splitter_.next()) {
    std::optional<LogCursor> told;
    if (!message->id.empty()) told = decode_cursor(message->id);
    if (told && told->offsets.size() == at_.offsets.size()) at_ = *told;
    if (message->event == "end") over_ = told_away_ = true;
    on_message_(*message, told ? &at_ : nullptr);
    if (*self == nullptr) return;
  }
  if (splitter_.too_long()) {
    over_ = true;
    ask_later();
  }
}

void RemoteFollow::set_paused(bool paused) {
  paused_ = paused;
  if (call_) call_->set_paused(paused);
}

}  // namespace muster
