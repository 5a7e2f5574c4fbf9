// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/remote_search.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace muster {

namespace {

int64_t number_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

}  // namespace

RemoteSearch::RemoteSearch(StatusContext& context, int attempt, int node, std::string host,
                           const std::string& target, OnChange on_change)
    : host_(std::move(host)), on_change_(std::move(on_change)) {
  RemoteCall::Callbacks callbacks;
  callbacks.on_head = [this](int status, const HttpHeaders&) { refused_ = status != 200; };
  callbacks.on_piece = [this](std::string_view piece) { on_piece(piece); };
  callbacks.on_end = [this] {
    if (!done_) on_lost();
  };
  callbacks.on_lost = [this] { on_lost(); };
  call_ =
      RemoteCall::start(context.loop, context.source, attempt, node, target, std::move(callbacks));
  if (!call_) done_ = lost_ = true;
}

void RemoteSearch::set_paused(bool paused) {
  if (call_) call_->set_paused(paused);
}

void RemoteSearch::on_piece(std::string_view piece) {
  if (refused_ || done_) return;
  unread_ += piece;
  size_t begin = 0;
  for (size_t end = unread_.find('\n'); end != unread_.npos; end = unread_.find('\n', begin)) {
    on_line(std::string_view(unread_).substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
  if (unread_.size() > kMaxLine) return on_lost();
  on_change_(*this);
}

void RemoteSearch::on_line(std::string_view line) {
  if (line.starts_with("{\"hit\"")) {
    hits_.emplace_back(line);
    return;
  }
  const auto told = nlohmann::json::parse(line, nullptr, false);
  if (!told.is_object()) return;
  if (const auto progress = told.find("progress"); progress != told.end()) {
    bytes_ = number_at(*progress, "bytes");
    total_bytes_ = number_at(*progress, "total_bytes");
  }
  if (const auto done = told.find("done"); done != told.end()) {
    done_ = true;
    bytes_ = total_bytes_ = number_at(*done, "bytes");
    truncated_ = done->value("truncated", nlohmann::json()) == true;
  }
}

void RemoteSearch::on_lost() {
  if (std::exchange(done_, true)) return;
  lost_ = true;
  on_change_(*this);
}

}  // namespace muster
