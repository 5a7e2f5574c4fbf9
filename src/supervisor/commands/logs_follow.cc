// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/json_get.h"
#include "supervisor/commands/logs_task.h"
#include "supervisor/commands/say.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

// One follow stream of the API after the other has its part of the ranks.
class Following : public LogsTask {
 public:
  Following(LogsContext& context, FollowPlaces& places, const std::string& start,
            OnLogsDone on_done)
      : context_(context),
        places_(places),
        on_done_(std::move(on_done)),
        self_(std::make_shared<Following*>(this)) {
    for (size_t i = 0; i < places_.streams.size(); ++i)
      begin(i, start);
  }

 private:
  void begin(size_t i, const std::string& start) {
    const auto& [ranks, last_id] = places_.streams[i];
    std::string target = "/api/v1/follow?attempt=" + std::to_string(places_.attempt) +
                         "&ranks=" + ranks + "&" + start;
    if (!context_.options.streams.empty()) target += "&streams=" + context_.options.streams;
    ++open_;
    calls_.push_back(context_.client.follow(
        std::move(target), last_id,
        [this, i](const EventStreamReader::Message& message) { on_message(i, message); },
        [this](const Result<void>& ended) { on_end(ended); }));
  }

  void on_message(size_t i, const EventStreamReader::Message& message) {
    if (!message.id.empty()) places_.streams[i].second = message.id;
    if (message.event == "lines" || message.event == "open") return on_page(message);
    if (message.event == "end") {
      over_ = true;
      return;
    }
    on_remark(message);
  }

  void on_page(const EventStreamReader::Message& message) {
    Result<ShownPage> page = parse_page(message.data);
    if (!page || page->lines.empty()) return;
    const auto key = std::pair(page->log.rank, page->log.stream);
    // The beginning of a line that has no end yet: it comes again.
    if (message.event == "open") {
      begun_.insert_or_assign(key, std::move(page->lines.back()));
      return;
    }
    begun_.erase(key);
    std::string text;
    for (const ShownLine& line : page->lines)
      if (context_.filter.passes(line.text)) text += context_.printer.text(line);
    print(text);
  }

  // "skip": the log went on without us; others say in words what is wrong with a log.
  static void on_remark(const EventStreamReader::Message& message) {
    const auto json = nlohmann::json::parse(message.data, nullptr, false);
    const std::string log = "rank " + std::to_string(json_get(json, "rank", -1)) + " " +
                            clean_line(json_text(json, "stream"));
    if (message.event == "skip") {
      const int64_t bytes = json_get(json, "to", int64_t{0}) - json_get(json, "from", int64_t{0});
      return say(log + ": " + std::to_string(bytes) +
                 " bytes came too fast and are not shown here");
    }
    const std::string text = clean_line(json_text(json, "message"));
    if (!text.empty()) say(json.contains("rank") ? log + ": " + text : text);
  }

  void on_end(const Result<void>& ended) {
    if (!ended && !error_) error_ = ended.error();
    if (--open_ > 0) return;
    context_.loop.post([weak = std::weak_ptr<Following*>(self_)] {
      if (auto self = weak.lock()) (*self)->finish();
    });
  }

  void finish() {
    OnLogsDone on_done = std::move(on_done_);
    if (error_) return on_done(*error_);
    if (!over_) return on_done(Error{kExitNoAnswer, context_.client.name() + ": it went away"});
    print_begun();
    on_done({});
  }

  void print_begun() {
    for (const auto& [key, line] : begun_)
      if (context_.filter.passes(line.text)) print(context_.printer.text(line));
  }

  LogsContext& context_;
  FollowPlaces& places_;
  OnLogsDone on_done_;
  std::vector<std::unique_ptr<HttpCall>> calls_;
  size_t open_ = 0;
  bool over_ = false;
  std::optional<Error> error_;
  std::map<std::pair<int, std::string>, ShownLine> begun_;
  std::shared_ptr<Following*> self_;
};

}  // namespace

std::unique_ptr<LogsTask> print_following(LogsContext& context, FollowPlaces& places,
                                          const std::string& start, OnLogsDone on_done) {
  return std::make_unique<Following>(context, places, start, std::move(on_done));
}

}  // namespace muster
