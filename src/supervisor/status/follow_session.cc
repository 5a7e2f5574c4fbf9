// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/follow_session.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <utility>

#include "loop/sse.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/status/log_json.h"

namespace muster {

FollowSession::FollowSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                             std::vector<ChosenLog> logs, LogCursor at, FollowStart start)
    : context_(context),
      exchange_(std::move(exchange)),
      tails_(logs.size()),
      at_(std::move(at)),
      start_(std::move(start)),
      last_write_(Clock::now()),
      page_bytes_(
          std::clamp(kMaxPages / std::max<int64_t>(1, std::ssize(logs)), kMinPage, kMaxPage)),
      rest_(std::min(kMaxRest, kRestPerLog * static_cast<int>(logs.size()))) {
  for (size_t i = 0; i < logs.size(); ++i)
    tails_[i].log = std::move(logs[i]);
  exchange_->set_callbacks({[this] { on_drained(); }, [this] { end(); }});
  exchange_->begin(200, {{"Content-Type", "text/event-stream"},
                         {"Cache-Control", "no-store"},
                         {"X-Accel-Buffering", "no"}});
  timer_ = Timer::repeat(context_.loop, kLookEvery, [this] { look(); });
  begin_groups();
  begin_next();
}

FollowSession::~FollowSession() = default;

void FollowSession::hurry() {
  timer_ = Timer::repeat(context_.loop, kLookInHaste, [this] { look(); });
  rest_ = Milliseconds(0);
  wake();
}

void FollowSession::on_drained() {
  if (told_end_) return end();
  set_paused(false);
}

void FollowSession::end() {
  context_.sessions.end(*this);
}

void FollowSession::begin_groups() {
  std::map<int, Group*> of_node;
  for (size_t i = 0; i < tails_.size(); ++i) {
    if (tails_[i].log.here) continue;
    Group*& group = of_node[tails_[i].log.node];
    if (group == nullptr) group = groups_.emplace_back(std::make_unique<Group>()).get();
    group->logs.push_back(i);
  }
  for (const std::unique_ptr<Group>& group : groups_) {
    std::vector<ChosenLog> logs;
    LogCursor at{at_.attempt, {}};
    for (size_t i : group->logs) {
      logs.push_back(tails_[i].log);
      at.offsets.push_back(at_.offsets[i]);
    }
    Group* of = group.get();
    group->follow = std::make_unique<RemoteFollow>(
        context_, std::move(logs), std::move(at), start_.forward,
        [this, of](const SseSplitter::Message& message, const LogCursor* offsets) {
          on_message(*of, message, offsets);
        },
        [this, of] { tell_away(*of); });
  }
}

// Begins logs until one has to be read first, or the client has enough to take for now.
void FollowSession::begin_next() {
  while (!paused_ && !beginning_ && next_ < tails_.size()) {
    const size_t i = next_++;
    Tail& tail = tails_[i];
    if (!tail.log.here) continue;
    if (at_.offsets[i]) {
      follow(i);
      continue;
    }
    beginning_ = true;
    tail.first = context_.reader.read(tail.log.path, start_.query, [this, i](Result<LogPage> page) {
      on_first(i, std::move(page));
    });
  }
}

void FollowSession::on_first(size_t i, Result<LogPage> page) {
  tails_[i].first.reset();
  beginning_ = false;
  if (!page && page.error().code == ENODATA) {
    // Without times everything may be newer than the time that was asked for.
    at_.offsets[i] = 0;
  } else if (!page) {
    at_.offsets[i] = 0;
    tell_trouble(i, page.error().message);
  } else {
    tell(i, *page);
  }
  follow(i);
  begin_next();
}

void FollowSession::follow(size_t i) {
  LogReader::FollowSettings settings;
  settings.offset = *at_.offsets[i];
  settings.max_bytes = page_bytes_;
  if (start_.everything) settings.max_lag = std::numeric_limits<int64_t>::max();
  tails_[i].follower =
      context_.reader.follow(tails_[i].log.path, settings,
                             [this, i](Result<LogPage> page) { on_page(i, std::move(page)); });
  if (paused_) tails_[i].follower->set_paused(true);
}

void FollowSession::on_page(size_t i, Result<LogPage> page) {
  if (page) {
    tell(i, *page);
    if (page->size - page->end < page_bytes_) rest(i);
    return;
  }
  tell_trouble(i, page.error().message);
  tails_[i].broken = true;
  tails_[i].follower.reset();
}

void FollowSession::rest(size_t i) {
  if (rest_ == Milliseconds(0)) return;
  tails_[i].resting = true;
  tails_[i].follower->set_paused(true);
  if (!rest_timer_) rest_timer_ = Timer::start(context_.loop, rest_, [this] { wake(); });
}

void FollowSession::wake() {
  rest_timer_.reset();
  for (Tail& tail : tails_) {
    if (std::exchange(tail.resting, false) && tail.follower) tail.follower->set_paused(paused_);
  }
}

// A last line without its newline is told apart, since it comes again when it has grown.
void FollowSession::tell(size_t i, const LogPage& page) {
  LogPage whole = page;
  LogPage open = page;
  open.lines.clear();
  if (!whole.lines.empty() && !whole.lines.back().ended) {
    open.lines.push_back(std::move(whole.lines.back()));
    whole.lines.pop_back();
    whole.end = open.offset = open.end = open.lines.front().offset;
  }
  const bool first = !at_.offsets[i].has_value();
  if (first || !whole.lines.empty()) tell_lines(i, std::move(whole));
  if (open.lines.empty()) return;
  std::string text;
  JsonOut out(text);
  write_page(out, tails_[i].log, open, may_grow(context_.source, tails_[i].log));
  send("open", text, false);
}

void FollowSession::tell_lines(size_t i, LogPage page) {
  const Tail& tail = tails_[i];
  std::string text;
  JsonOut out(text);
  if (at_.offsets[i] && page.offset > *at_.offsets[i]) {
    out.begin_object();
    out.field("attempt", tail.log.attempt);
    out.field("rank", tail.log.rank);
    out.field("stream", stream_name(tail.log.stream));
    out.field("from", *at_.offsets[i]);
    out.field("to", page.offset);
    out.end_object();
    send("skip", std::exchange(text, {}), false);
  }
  at_.offsets[i] = page.end;
  JsonOut lines(text);
  write_page(lines, tail.log, page, may_grow(context_.source, tail.log));
  send("lines", text, true);
}

void FollowSession::tell_trouble(size_t i, const std::string& message) {
  const ChosenLog& log = tails_[i].log;
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.field("attempt", log.attempt);
  out.field("rank", log.rank);
  out.field("stream", stream_name(log.stream));
  out.field("message", message);
  out.end_object();
  send("trouble", text, false);
}

void FollowSession::on_message(Group& group, const SseSplitter::Message& message,
                               const LogCursor* offsets) {
  if (message.event == "end") {
    group.ended = true;
    return;
  }
  if (offsets != nullptr && offsets->offsets.size() == group.logs.size()) {
    for (size_t i = 0; i < group.logs.size(); ++i)
      at_.offsets[group.logs[i]] = offsets->offsets[i];
  }
  send(message.event.c_str(), message.data, offsets != nullptr);
}

void FollowSession::tell_away(Group& group) {
  const ChosenLog& log = tails_[group.logs.front()].log;
  std::vector<int> ranks;
  for (size_t i : group.logs) {
    if (ranks.empty() || ranks.back() != tails_[i].log.rank) ranks.push_back(tails_[i].log.rank);
  }
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.field("attempt", log.attempt);
  out.field("ranks", format_ranges(std::move(ranks)));
  out.field("host", log.host);
  out.field("message", "the logs are on " + log.host + ", which is not connected; there at " +
                           log_place(context_.source.state(), log));
  out.end_object();
  send("away", text, false);
  if (!context_.source.live()) group.ended = true;
}

void FollowSession::look() {
  for (size_t i = 0; i < tails_.size(); ++i)
    look_for_end(i);
  if (told_end_) return;
  paused_looks_ = paused_ ? paused_looks_ + 1 : 0;
  if (paused_looks_ == kParkAfter) park();
  if (!paused_ && all_ended()) {
    told_end_ = true;
    send("end", "{}", false);
    exchange_->finish();
    // It is over when the client has it: the server may go then.
    if (exchange_->unsent() == 0) end();
    return;
  }
  if (!paused_ && Clock::now() - last_write_ >= kSilence) {
    last_write_ = Clock::now();
    exchange_->write(sse_comment(""));
  }
}

void FollowSession::look_for_end(size_t i) {
  Tail& tail = tails_[i];
  if (tail.ended || !tail.follower || tail.first || paused_) return;
  if (may_grow(context_.source, tail.log)) return;
  LogQuery query;
  query.from = LogQuery::From::kOffset;
  query.position = *at_.offsets[i];
  query.max_lines = 1;
  query.max_line = 1;
  tail.first = context_.reader.read(tail.log.path, query, [this, i](const Result<LogPage>& page) {
    tails_[i].first.reset();
    on_look(i, page);
  });
}

// Whole is what has no line that was not told. A line without its newline is all that may be left.
void FollowSession::on_look(size_t i, const Result<LogPage>& page) {
  if (!page) return;
  const bool more = !page->lines.empty() && page->lines.front().ended &&
                    page->lines.front().offset >= *at_.offsets[i];
  tails_[i].quiet_looks = more ? 0 : tails_[i].quiet_looks + 1;
  if (tails_[i].quiet_looks >= kQuietLooks) tell_ended(i);
}

bool FollowSession::all_ended() const {
  for (const Tail& tail : tails_) {
    if (tail.log.here && !tail.ended) return false;
  }
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const std::unique_ptr<Group>& group) { return group->ended; });
}

void FollowSession::tell_ended(size_t i) {
  Tail& tail = tails_[i];
  tail.ended = true;
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.field("attempt", tail.log.attempt);
  out.field("rank", tail.log.rank);
  out.field("stream", stream_name(tail.log.stream));
  out.field("end", *at_.offsets[i]);
  out.end_object();
  send("ended", text, false);
}

void FollowSession::send(const char* event, const std::string& data, bool with_id) {
  last_write_ = Clock::now();
  exchange_->write(sse_text({event, with_id ? encode_cursor(at_) : "", data}));
  if (exchange_->unsent() > kMaxUnsent) set_paused(true);
}

void FollowSession::set_paused(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  if (!paused && parked_) {
    go_on();
  } else {
    for (Tail& tail : tails_) {
      if (tail.follower && !tail.resting) tail.follower->set_paused(paused);
    }
  }
  for (const std::unique_ptr<Group>& group : groups_) {
    if (group->follow) group->follow->set_paused(paused);
  }
  if (!paused) begin_next();
}

// Each follower has its next page ready. A client that takes nothing does not get to keep so many.
void FollowSession::park() {
  parked_ = true;
  for (Tail& tail : tails_) {
    tail.follower.reset();
    tail.resting = false;
  }
}

void FollowSession::go_on() {
  parked_ = false;
  for (size_t i = 0; i < next_; ++i) {
    const Tail& tail = tails_[i];
    if (tail.log.here && !tail.broken && !tail.follower && at_.offsets[i]) follow(i);
  }
}

}  // namespace muster
