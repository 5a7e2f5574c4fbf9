// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/search_session.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "loop/http_target.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/log_json.h"

namespace muster {

SearchSession::SearchSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                             SearchRequest request, std::shared_ptr<const SearchPattern> pattern,
                             std::vector<ChosenLog> logs)
    : context_(context),
      exchange_(std::move(exchange)),
      request_(std::move(request)),
      nodes_(group_by_node(logs)) {
  std::copy_if(logs.begin(), logs.end(), std::back_inserter(here_),
               [](const ChosenLog& log) { return log.here && !log.path.empty(); });
  exchange_->set_callbacks(
      {[this] { set_paused(false); }, [this] { context_.sessions.end(*this); }});
  exchange_->begin(200, {{"Content-Type", kContentType}, {"Cache-Control", "no-store"}});
  search_here(std::move(pattern));
  ask_nodes();
  timer_ = Timer::repeat(context_.loop, kTellEvery, [this] { tell_progress(); });
}

void SearchSession::search_here(std::shared_ptr<const SearchPattern> pattern) {
  SearchWork::Settings settings;
  settings.pattern = std::move(pattern);
  settings.context = static_cast<int>(request_.context);
  settings.max_hits = request_.limit;
  for (const ChosenLog& log : here_)
    settings.places.push_back({log.path, request_.from, request_.to});
  if (here_.size() == 1) settings.lines = context_.reader.log(here_.front().path);
  search_ = LogSearch::start(context_.reader.gate(), std::move(settings),
                             [this](const std::vector<SearchHit>& hits,
                                    const LogSearch::State& state) { on_found(hits, state); });
}

void SearchSession::on_found(const std::vector<SearchHit>& hits, const LogSearch::State& state) {
  if (over_) return;
  state_ = state;
  std::string text;
  for (const SearchHit& hit : hits)
    if (count_hit()) text += hit_json(hit);
  write(text);
  finish_if_done();
}

// A few nodes at a time, so that a search of a thousand is no burst of a thousand answers.
void SearchSession::ask_nodes() {
  auto busy = [this] {
    return std::count_if(remote_.begin(), remote_.end(),
                         [](const auto& search) { return !search->done(); });
  };
  while (next_node_ < nodes_.size() && busy() < kMaxCalls) {
    const NodeLogs& node = nodes_[next_node_++];
    remote_.push_back(std::make_unique<RemoteSearch>(
        context_, node.attempt, node.node, node.host, target_of(node),
        [this](RemoteSearch& search) { on_node(search); }));
    if (paused_) remote_.back()->set_paused(true);
  }
}

std::string SearchSession::target_of(const NodeLogs& node) const {
  std::string target = "/api/v1/search?q=" + percent_encode(request_.text) + "&" + node.query() +
                       "&context=" + std::to_string(request_.context) +
                       "&limit=" + std::to_string(request_.limit);
  if (request_.is_regex) target += "&regex=1";
  if (request_.case_sensitive) target += "&case=1";
  if (request_.from > 0) target += "&from=" + std::to_string(request_.from);
  if (request_.to < INT64_MAX) target += "&to=" + std::to_string(request_.to);
  return target;
}

void SearchSession::on_node(RemoteSearch& search) {
  if (over_) return;
  std::string text;
  for (const std::string& hit : search.take_hits())
    if (count_hit()) text += hit;
  write(text);
  if (search.done()) ask_nodes();
  finish_if_done();
}

bool SearchSession::count_hit() {
  if (hits_ < request_.limit) return ++hits_ > 0;
  more_ = true;
  return false;
}

void SearchSession::write(const std::string& text) {
  exchange_->write(text);
  if (exchange_->unsent() > kMaxUnsent) set_paused(true);
}

void SearchSession::set_paused(bool paused) {
  if (over_ || std::exchange(paused_, paused) == paused) return;
  search_->set_paused(paused);
  for (const auto& search : remote_)
    search->set_paused(paused);
}

void SearchSession::tell_progress() {
  if (exchange_->unsent() > 0) return;
  int64_t bytes = state_.bytes, total = state_.total_bytes;
  for (const auto& search : remote_) {
    bytes += search->bytes();
    total += search->total_bytes();
  }
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.key("progress");
  out.begin_object();
  out.field("bytes", bytes);
  out.field("total_bytes", total);
  out.field("hits", hits_);
  out.end_object();
  out.end_object();
  write(text += '\n');
}

void SearchSession::finish_if_done() {
  bool done = state_.done && next_node_ == nodes_.size();
  bool truncated = more_ || state_.truncated;
  int64_t bytes = state_.bytes;
  std::set<std::string> unreachable;
  for (const auto& search : remote_) {
    done = done && search->done();
    truncated = truncated || search->truncated();
    bytes += search->bytes();
    if (search->lost()) unreachable.insert(search->host());
  }
  if (over_ || (!done && hits_ < request_.limit)) return;
  over_ = true;
  truncated = truncated || !done;
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.key("done");
  out.begin_object();
  out.field("hits", hits_);
  out.field("truncated", truncated);
  out.field("bytes", bytes);
  auto list = [&](const char* name, const auto& texts) {
    if (texts.empty()) return;
    out.key(name);
    out.begin_array();
    for (const std::string& one : texts)
      out.value(one);
    out.end_array();
  };
  list("unreachable", unreachable);
  list("troubles", state_.troubles);
  out.end_object();
  out.end_object();
  exchange_->write(text += '\n');
  exchange_->finish();
  context_.sessions.end(*this);
}

std::string SearchSession::hit_json(const SearchHit& hit) const {
  const ChosenLog& log = here_[hit.log];
  std::string text;
  JsonOut out(text);
  out.begin_object();
  out.key("hit");
  out.begin_object();
  out.field("attempt", log.attempt);
  out.field("rank", log.rank);
  out.field("stream", stream_name(log.stream));
  out.field("offset", hit.line.offset);
  out.field("number", hit.line.number);
  out.field("time_us", hit.line.time_us);
  out.field("size", hit.line.size);
  out.field("ended", hit.line.ended);
  if (hit.line.skipped > 0) out.field("skipped", hit.line.skipped);
  out.field("text", hit.line.text);
  out.key("matches");
  out.begin_array();
  for (const auto& [begin, end] : hit.matches) {
    out.begin_list();
    out.value(begin);
    out.value(end);
    out.end_array();
  }
  out.end_array();
  for (const auto& [name, lines] : {std::pair{"before", &hit.before}, {"after", &hit.after}}) {
    out.key(name);
    out.begin_array();
    for (const LogLine& line : *lines)
      write_line(out, line);
    out.end_array();
  }
  out.end_object();
  out.end_object();
  return text += '\n';
}

}  // namespace muster
