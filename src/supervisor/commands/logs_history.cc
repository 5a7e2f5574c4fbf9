// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/log_merge.h"
#include "supervisor/commands/logs_task.h"
#include "supervisor/commands/say.h"

namespace muster {

namespace {

constexpr int64_t kMaxLines = 5'000;      // of a page, as the API has it
constexpr int64_t kLinesOfAll = 200'000;  // asked for at once, of all logs together
constexpr int64_t kLeastLines = 50;
constexpr size_t kMaxCalls = 8;  // at the same time
constexpr size_t kMaxTroubles = 3;
// What is asked for of a line; many logs wait for each other with a page each.
constexpr int kMaxLine = 1 << 20;
constexpr int kMaxLineOfMany = 16 << 10;
constexpr size_t kMany = 64;

class History : public LogsTask {
 public:
  History(LogsContext& context, std::vector<LogName> logs, OnLogsDone on_done)
      : context_(context),
        logs_(logs.size()),
        merge_(logs.size()),
        on_done_(std::move(on_done)),
        self_(std::make_shared<History*>(this)) {
    for (size_t i = 0; i < logs.size(); ++i) {
      logs_[i].name = std::move(logs[i]);
      logs_[i].wanted = context_.options.tail.value_or(0);
    }
    lines_ = std::clamp(kLinesOfAll / std::max<int64_t>(1, static_cast<int64_t>(logs_.size())),
                        kLeastLines, kMaxLines);
    next_turn();
  }

 private:
  enum class Step { kFirst, kBack, kOn };
  struct Log {
    LogName name;
    Step step = Step::kFirst;
    int64_t offset = 0;
    int64_t wanted = 0;  // lines of its end that are not found yet
    bool asked = false;  // and not answered yet
    std::unique_ptr<HttpCall> call;
  };

  // Goes on when what called it has returned: calls are not dropped in their own callbacks.
  void next_turn() {
    if (std::exchange(posted_, true)) return;
    context_.loop.post([weak = std::weak_ptr<History*>(self_)] {
      if (auto self = weak.lock()) (*self)->next();
    });
  }

  void next() {
    posted_ = false;
    print_taken();
    if (merge_.done()) return finish();
    for (size_t i : merge_.needs()) {
      if (calls_ >= kMaxCalls) return;
      if (!logs_[i].asked) ask(i);
    }
  }

  std::string target(const Log& log) const {
    const std::string base = log_target(log.name) + "?";
    const std::string lines = "&lines=" + std::to_string(lines_) + "&max_line=" +
                              std::to_string(logs_.size() > kMany ? kMaxLineOfMany : kMaxLine);
    const CommandOptions& options = context_.options;
    if (log.step == Step::kOn) return base + "offset=" + std::to_string(log.offset) + lines;
    // Looking back for a place shows nothing, so a byte of each line is enough.
    const std::string count = std::to_string(std::min(log.wanted, kMaxLines)) + "&max_line=1";
    if (log.step == Step::kBack) {
      return base + "before=" + std::to_string(log.offset) + "&lines=" + count;
    }
    if (options.tail) return base + "tail=" + count;
    if (options.since_us) return base + "time=" + std::to_string(*options.since_us) + lines;
    return base + "offset=0" + lines;
  }

  void ask(size_t i) {
    ++calls_;
    logs_[i].asked = true;
    logs_[i].call = context_.client.get(target(logs_[i]), [this, i](Result<std::string> body) {
      --calls_;
      logs_[i].asked = false;
      on_answer(i, body ? parse_page(*body) : body.error());
      next_turn();
    });
  }

  void on_answer(size_t i, Result<ShownPage> page) {
    Log& log = logs_[i];
    if (!page) return on_trouble(i, page.error());
    if (!page->exists) return merge_.end(i);
    if (log.step != Step::kOn && context_.options.tail) return look_back(i, *page);
    add_page(i, std::move(*page));
  }

  // Finds where the last lines begin, however many pages back that is.
  void look_back(size_t i, const ShownPage& page) {
    Log& log = logs_[i];
    if (log.wanted == 0) return merge_.end(i);
    const auto count = static_cast<int64_t>(page.lines.size());
    if (count > 0) log.offset = page.lines.front().offset;
    log.wanted -= std::min(count, log.wanted);
    log.step = log.wanted == 0 || count == 0 || log.offset == 0 ? Step::kOn : Step::kBack;
    if (count == 0 && log.offset == 0) merge_.end(i);
  }

  void add_page(size_t i, ShownPage page) {
    Log& log = logs_[i];
    // A last line without its newline is not behind `end`: it would come again.
    const bool begun = !page.lines.empty() && !page.lines.back().ended;
    const bool whole = begun || page.reaches_end() || page.end <= log.offset;
    if (page.hole) add_hole(log, page);
    log.step = Step::kOn;
    log.offset = page.end;
    merge_.add(i, std::move(page.lines));
    if (whole) merge_.end(i);
  }

  // Says where a bounded log has left out its middle.
  void add_hole(const Log& log, ShownPage& page) const {
    const int64_t begin = page.hole->first;
    const int64_t end = page.hole->second;
    const auto behind = std::find_if(page.lines.begin(), page.lines.end(),
                                     [end](const ShownLine& line) { return line.offset >= end; });
    const bool before = log.offset <= begin && log.step == Step::kOn;
    const bool first = behind == page.lines.begin();
    if (behind == page.lines.end() || (first && !before) || context_.options.json) return;
    ShownLine note;
    note.log = log.name;
    note.time_us = first ? 0 : std::prev(behind)->time_us;
    note.text = "[muster: " + std::to_string(end - begin) + " bytes are left out here]";
    page.lines.insert(behind, std::move(note));
  }

  void on_trouble(size_t i, const Error& error) {
    Log& log = logs_[i];
    const bool there = error.code != kExitNoRun;
    if (log.step == Step::kFirst && context_.options.since_us && there) {
      say(log_title(log.name) + ": when its lines came is not known: all of it is shown");
      log.step = Step::kOn;
      return;
    }
    merge_.end(i);
    last_error_ = error;
    if (++troubles_ <= kMaxTroubles) say(log_title(log.name) + ": " + error.message);
  }

  void print_taken() {
    std::string text;
    for (std::vector<ShownLine> lines = merge_.take(); !lines.empty(); lines = merge_.take()) {
      for (const ShownLine& line : lines)
        text += context_.printer.text(line);
    }
    print(text);
  }

  void finish() {
    if (troubles_ > kMaxTroubles) {
      say("and " + std::to_string(troubles_ - kMaxTroubles) + " more logs cannot be read");
    }
    const bool none = troubles_ == logs_.size() && troubles_ > 0;
    OnLogsDone on_done = std::move(on_done_);
    // Calling out comes last: we may be dropped in it.
    if (none) return on_done(Error{last_error_.code, "none of the logs can be read"});
    on_done({});
  }

  LogsContext& context_;
  std::vector<Log> logs_;
  LogMerge merge_;
  OnLogsDone on_done_;
  int64_t lines_ = kMaxLines;
  size_t calls_ = 0;
  size_t troubles_ = 0;
  Error last_error_;
  bool posted_ = false;
  std::shared_ptr<History*> self_;
};

}  // namespace

std::unique_ptr<LogsTask> print_history(LogsContext& context, std::vector<LogName> logs,
                                        OnLogsDone on_done) {
  return std::make_unique<History>(context, std::move(logs), std::move(on_done));
}

}  // namespace muster
