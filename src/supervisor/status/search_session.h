// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "loop/timer.h"
#include "supervisor/browse/search.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/node_logs.h"
#include "supervisor/status/remote_search.h"
#include "supervisor/status/status_context.h"

namespace muster {

struct SearchRequest {
  std::string text;
  bool is_regex = false;
  bool case_sensitive = false;
  int64_t context = 2;
  int64_t limit = 1'000;
  int64_t from = 0;
  int64_t to = INT64_MAX;
};

// One search: here, and on the other nodes through their own search endpoints; what any of them
// finds goes out at once. It goes on only as fast as the client reads.
class SearchSession final : public StatusSession {
 public:
  static constexpr char kContentType[] = "application/x-ndjson";
  static constexpr size_t kMaxSessions = 24;               // then 503
  static constexpr size_t kMaxUnsent = size_t{256} << 10;  // then it is paused
  static constexpr int64_t kMaxCalls = 8;                  // nodes asked at a time
  static constexpr Milliseconds kTellEvery{200};

  SearchSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                SearchRequest request, std::shared_ptr<const SearchPattern> pattern,
                std::vector<ChosenLog> logs);

 private:
  void search_here(std::shared_ptr<const SearchPattern> pattern);
  void on_found(const std::vector<SearchHit>& hits, const LogSearch::State& state);
  void ask_nodes();
  void on_node(RemoteSearch& search);
  std::string target_of(const NodeLogs& node) const;
  bool count_hit();
  void write(const std::string& text);
  void tell_progress();
  void finish_if_done();
  void set_paused(bool paused);
  std::string hit_json(const SearchHit& hit) const;

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const SearchRequest request_;
  std::vector<ChosenLog> here_;
  std::vector<NodeLogs> nodes_;
  size_t next_node_ = 0;
  std::unique_ptr<LogSearch> search_;
  LogSearch::State state_;
  std::vector<std::unique_ptr<RemoteSearch>> remote_;
  int64_t hits_ = 0;
  bool more_ = false;  // hits beyond the limit
  bool paused_ = false;
  bool over_ = false;
  Owned<Timer> timer_;
};

}  // namespace muster
