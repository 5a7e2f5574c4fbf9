// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/event_hub.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "loop/sse.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/event_messages.h"
#include "supervisor/status/random_hex.h"

namespace muster {

namespace {

// The version in "<epoch>-<version>"; nothing if it is not of this epoch.
std::optional<int64_t> version_in(std::string_view id, std::string_view epoch) {
  if (id.size() <= epoch.size() || id.substr(0, epoch.size()) != epoch || id[epoch.size()] != '-') {
    return std::nullopt;
  }
  id.remove_prefix(epoch.size() + 1);
  int64_t version = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), version);
  if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
  return version;
}

}  // namespace

EventHub::EventHub(Loop& loop, JobSource& source, Limits limits)
    : loop_(loop),
      source_(source),
      limits_(limits),
      epoch_(random_hex(6)),
      self_(std::make_shared<EventHub*>(this)) {}

EventHub::~EventHub() {
  *self_ = nullptr;
  if (begun_) source_.set_observer(nullptr);
}

void EventHub::begin() {
  if (std::exchange(begun_, true)) return;
  for (Event& event : source_.recent_events()) {
    recent_.push_back(std::move(event));
    if (recent_.size() > kMaxEvents) recent_.pop_front();
  }
  live_ = source_.live();
  versions_.reset(source_.state(), source_.next_seq());
  source_.set_observer([this](const Event& event) { on_event(event); });
}

void EventHub::on_event(const Event& event) {
  versions_.note(source_.state(), event.body, source_.next_seq());
  recent_.push_back(event);
  if (recent_.size() > kMaxEvents) recent_.pop_front();
  if (!clients_.empty() && !gather_timer_) post_flush();
}

void EventHub::post_flush() {
  if (gather_timer_) return;
  gather_timer_ = Timer::start(loop_, limits_.gather_time, [this] {
    gather_timer_.reset();
    flush();
  });
}

void EventHub::open(std::unique_ptr<HttpExchange> exchange, std::string_view last_id) {
  if (clients_.size() >= limits_.max_streams) {
    return reply_error(*exchange, 503, "too many event streams are open",
                       "close one, or ask for /status now and then");
  }
  begin();
  const uint64_t id = next_client_++;
  Client& client = clients_[id];
  client.exchange = std::move(exchange);
  client.told = version_in(last_id, epoch_).value_or(-1);
  // A version that has not been reached was never told.
  if (client.told > source_.next_seq()) client.told = -1;
  client.last_write = Clock::now();
  client.exchange->set_callbacks({[this] {
                                    if (!gather_timer_) post_flush();
                                  },
                                  [this, id] {
                                    const auto found = clients_.find(id);
                                    if (found == clients_.end()) return;
                                    found->second.gone = true;
                                    drop_gone();
                                  }});
  client.exchange->begin(200, {{"Content-Type", "text/event-stream"},
                               {"Cache-Control", "no-store"},
                               {"X-Accel-Buffering", "no"}});
  if (!period_timer_) {
    period_timer_ = Timer::repeat(loop_, limits_.sample_period, [this] { look_after(); });
  }
  take_samples();
  flush();
}

// A client may be found gone within one of its own callbacks, or while others are written to.
void EventHub::drop_gone() {
  loop_.post([self = self_] {
    if (*self == nullptr) return;
    EventHub& hub = **self;
    std::erase_if(hub.clients_, [](const auto& entry) { return entry.second.gone; });
    if (hub.clients_.empty()) {
      hub.period_timer_.reset();
      hub.gather_timer_.reset();
    }
  });
}

void EventHub::send(Client& client, std::string_view message) {
  client.exchange->write(message);
  client.last_write = Clock::now();
}

// Most clients have been told the same so far: what they get is made once.
void EventHub::flush() {
  const int64_t version = source_.next_seq();
  std::map<int64_t, std::string> changes;
  std::map<int64_t, std::string> samples;
  for (auto& [id, client] : clients_) {
    if (client.gone || client.exchange->unsent() > 0) continue;
    if (client.told != version) {
      std::string& message = changes[client.told];
      if (message.empty()) message = message_since(client.told);
      send(client, message);
      client.told = version;
    }
    if (client.told_samples != sample_version_) {
      std::string& message = samples[client.told_samples];
      if (message.empty()) message = samples_since(client.told_samples);
      send(client, message);
      client.told_samples = sample_version_;
    }
  }
}

void EventHub::hurry() {
  gather_timer_.reset();
  flush();
}

bool EventHub::all_told() const {
  const int64_t version = source_.next_seq();
  return std::all_of(clients_.begin(), clients_.end(), [version](const auto& entry) {
    const Client& client = entry.second;
    return client.gone || (client.told == version && client.exchange->unsent() == 0);
  });
}

void EventHub::end_all() {
  for (auto& [id, client] : clients_) {
    if (!std::exchange(client.gone, true)) client.exchange->finish();
  }
  drop_gone();
}

std::string EventHub::message_since(int64_t version) const {
  const JobView view = view_of(source_);
  const int64_t now = source_.next_seq();
  const std::string id = epoch_ + "-" + std::to_string(now);
  if (version < 0) return sse_text({"state", id, state_message(view, now, recent_)});
  return sse_text(
      {"change", id, change_message(view, now, versions_.since(version), recent_, version)});
}

std::string EventHub::samples_since(int64_t version) const {
  std::vector<const RankSample*> changed;
  for (const auto& [rank, row] : samples_) {
    if (row.version > version) changed.push_back(&row.sample);
  }
  return sse_text({"samples", "", samples_message(changed)});
}

void EventHub::take_samples() {
  bool changed = false;
  for (RankSample& sample : source_.samples()) {
    SampleRow& row = samples_[sample.rank];
    if (row.version > 0 && row.sample.time_us == sample.time_us) continue;
    if (!std::exchange(changed, true)) ++sample_version_;
    row = {sample, sample_version_};
  }
}

void EventHub::look_after() {
  // No event says that the muster of a run was killed, and it changes what every row tells.
  if (const bool live = source_.live(); std::exchange(live_, live) != live) {
    epoch_ = random_hex(6);
    for (auto& [id, client] : clients_)
      client.told = -1;
  }
  take_samples();
  flush();
  const Clock::time_point now = Clock::now();
  for (auto& [id, client] : clients_) {
    if (client.gone || client.exchange->unsent() > 0) continue;
    if (now - client.last_write >= limits_.silence) send(client, sse_comment(""));
  }
}

}  // namespace muster
