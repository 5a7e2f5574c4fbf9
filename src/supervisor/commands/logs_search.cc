// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/logs_task.h"
#include "supervisor/commands/run_url.h"
#include "supervisor/commands/say.h"
#include "supervisor/diagnosis/text_lines.h"

namespace muster {

namespace {

constexpr int64_t kMaxHits = 20'000;
constexpr size_t kMaxAnswer = size_t{16} << 20;  // one line of JSON

class Search : public LogsTask {
 public:
  Search(LogsContext& context, const std::string& attempt, int64_t* found, OnLogsDone on_done)
      : context_(context),
        found_(found),
        on_done_(std::move(on_done)),
        self_(std::make_shared<Search*>(this)) {
    call_ = context_.client.get_pieces(
        target(attempt), [this](std::string_view piece) { take(piece); },
        [this](const Result<void>& ended) {
          if (!ended) error_ = ended.error();
          context_.loop.post([weak = std::weak_ptr<Search*>(self_)] {
            if (auto self = weak.lock()) (*self)->finish();
          });
        });
  }

 private:
  std::string target(const std::string& attempt) const {
    const CommandOptions& options = context_.options;
    std::string text =
        "/api/v1/search?q=" + url_encoded(options.grep) + "&regex=" + (options.fixed ? "0" : "1") +
        "&case=" + (options.ignore_case ? "0" : "1") +
        "&context=" + std::to_string(options.context) + "&limit=" + std::to_string(kMaxHits);
    if (!attempt.empty()) text += "&attempt=" + attempt;
    if (!options.ranks.empty()) text += "&ranks=" + options.ranks;
    if (!options.streams.empty()) text += "&streams=" + options.streams;
    return text;
  }

  void take(std::string_view piece) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      if (line_.size() < kMaxAnswer) line_ += piece.substr(0, end);
      if (end == std::string_view::npos) return;
      on_line();
      line_.clear();
      piece.remove_prefix(end + 1);
    }
  }

  void on_line() {
    Result<SearchAnswer> answer = parse_search_answer(line_);
    if (!answer) return;
    if (answer->hit) show(*answer->hit);
    if (!answer->error.empty()) error_ = Error{kExitNoAnswer, answer->error};
    whole_ = whole_ || answer->done;
    for (const std::string& note : answer->notes)
      say("logs: " + clean_line(note));
    if (answer->truncated) {
      say("more lines match than the " + std::to_string(*found_) +
          " shown: choose with --rank, --stream, --attempt or a narrower expression");
    }
  }

  void show(const SearchHit& hit) {
    const std::optional<int64_t>& since = context_.options.since_us;
    if (since && hit.line.time_us > 0 && hit.line.time_us < *since) return;
    std::string text;
    if (context_.options.context > 0 && *found_ > 0) text += context_.printer.separator();
    ++*found_;
    for (const ShownLine& line : hit.before)
      text += context_.printer.context(line);
    text += context_.printer.text(hit.line, hit.matches);
    for (const ShownLine& line : hit.after)
      text += context_.printer.context(line);
    print(text);
  }

  void finish() {
    OnLogsDone on_done = std::move(on_done_);
    if (!error_ && !whole_) error_ = Error{kExitNoAnswer, "the search broke off"};
    if (error_) return on_done(*error_);
    on_done({});
  }

  LogsContext& context_;
  int64_t* found_;
  OnLogsDone on_done_;
  std::string line_;
  bool whole_ = false;
  std::optional<Error> error_;
  std::unique_ptr<HttpCall> call_;
  std::shared_ptr<Search*> self_;
};

}  // namespace

std::unique_ptr<LogsTask> print_matches(LogsContext& context, const std::string& attempt,
                                        int64_t* found, OnLogsDone on_done) {
  return std::make_unique<Search>(context, attempt, found, std::move(on_done));
}

}  // namespace muster
