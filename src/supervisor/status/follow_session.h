// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loop/timer.h"
#include "supervisor/browse/log_reader.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/log_cursor.h"
#include "supervisor/status/remote_follow.h"
#include "supervisor/status/status_context.h"

namespace muster {

// What a client wants to have of logs that it has no offset of.
struct FollowStart {
  LogQuery query;       // of the first lines
  std::string forward;  // the same in words, for other nodes: "&tail=200"
  // With a time everything since then is wanted, however much.
  bool everything = false;
};

// One client that follows several logs of an attempt. Logs of this machine are begun one after the
// other, so that a slow client has at most a page of each waiting for it.
class FollowSession final : public StatusSession {
 public:
  static constexpr size_t kMaxUnsent = size_t{128} << 10;  // then it is paused
  static constexpr int kParkAfter = 2;                     // looks that found it paused
  // Of text, beyond the first lines: what all pages that are ready may hold, and one of them.
  static constexpr int64_t kMaxPages = int64_t{1} << 20;
  static constexpr int64_t kMaxPage = int64_t{64} << 10;
  static constexpr int64_t kMinPage = int64_t{8} << 10;
  static constexpr size_t kMaxSessions = 64;  // then 503
  // After a page that was not full its log rests so long for each log of the stream, so that what
  // a stream costs does not grow with the number of its logs.
  static constexpr Milliseconds kRestPerLog{4};
  static constexpr Milliseconds kMaxRest{500};
  static constexpr Milliseconds kLookEvery{1'000};
  static constexpr Milliseconds kLookInHaste{50};
  static constexpr Milliseconds kSilence{10'000};

  // `at` has a place for each log.
  FollowSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                std::vector<ChosenLog> logs, LogCursor at, FollowStart start);
  ~FollowSession() override;

  void hurry() override;
  bool lasting() const override { return true; }

 private:
  struct Tail {
    ChosenLog log;
    std::unique_ptr<BrowseTask> first;  // its first lines, or a look whether it is whole
    std::unique_ptr<LogReader::Follower> follower;
    bool resting = false;
    bool broken = false;  // it cannot be read on
    int quiet_looks = 0;  // in a row that found it whole after its worker's end
    bool ended = false;   // its worker has, and all it wrote was sent
  };
  struct Group {
    std::vector<size_t> logs;  // which of ours
    std::unique_ptr<RemoteFollow> follow;
    bool ended = false;
  };
  // Its last bytes may still be on their way to the file when a worker's end is known.
  static constexpr int kQuietLooks = 2;

  void begin_next();
  void begin_groups();
  void follow(size_t i);
  void on_first(size_t i, Result<LogPage> page);
  void on_page(size_t i, Result<LogPage> page);
  void rest(size_t i);
  void wake();
  void tell(size_t i, const LogPage& page);
  void tell_lines(size_t i, LogPage page);
  void tell_trouble(size_t i, const std::string& message);
  void on_message(Group& group, const SseSplitter::Message& message, const LogCursor* offsets);
  void tell_away(Group& group);
  void look();
  void look_for_end(size_t i);
  void on_look(size_t i, const Result<LogPage>& page);
  void tell_ended(size_t i);
  bool all_ended() const;
  void send(const char* event, const std::string& data, bool with_id);
  void set_paused(bool paused);
  void park();
  void go_on();
  void on_drained();
  void end();

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  std::vector<Tail> tails_;
  LogCursor at_;
  const FollowStart start_;
  size_t next_ = 0;         // the log to begin next
  bool beginning_ = false;  // a log is read first
  bool paused_ = false;
  int paused_looks_ = 0;
  bool parked_ = false;  // paused for so long that its followers were given up
  bool told_end_ = false;
  std::vector<std::unique_ptr<Group>> groups_;
  Clock::time_point last_write_;
  Owned<Timer> timer_;
  int64_t page_bytes_ = kMaxPage;
  Milliseconds rest_{0};
  Owned<Timer> rest_timer_;
};

}  // namespace muster
