// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/status/remote_call.h"
#include "supervisor/status/status_context.h"

namespace muster {

// A search on one other node. Owned by the search that has asked for it.
class RemoteSearch {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 20;  // of its answer

  // From the loop: there are hits to take, or how far it is has changed. The owner drops this on a
  // later turn.
  using OnChange = std::function<void(RemoteSearch& search)>;
  RemoteSearch(StatusContext& context, int attempt, int node, std::string host,
               const std::string& target, OnChange on_change);

  // Lines of JSON, each with its newline.
  std::vector<std::string> take_hits() { return std::exchange(hits_, {}); }
  void set_paused(bool paused);

  const std::string& host() const { return host_; }
  int64_t bytes() const { return bytes_; }
  int64_t total_bytes() const { return total_bytes_; }
  bool done() const { return done_; }
  bool truncated() const { return truncated_; }
  // It was not reached, or went away: what it would have found is not known.
  bool lost() const { return lost_; }

 private:
  void on_piece(std::string_view piece);
  void on_line(std::string_view line);
  void on_lost();

  const std::string host_;
  OnChange on_change_;
  std::unique_ptr<RemoteCall> call_;
  std::string unread_;
  std::vector<std::string> hits_;
  int64_t bytes_ = 0;
  int64_t total_bytes_ = 0;
  bool refused_ = false;
  bool done_ = false;
  bool truncated_ = false;
  bool lost_ = false;
};

}  // namespace muster
