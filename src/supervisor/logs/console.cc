// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/console.h"

#include <algorithm>

#include "supervisor/cli/ranges.h"
#include "supervisor/logs/screen_text.h"

namespace muster {

namespace {

constexpr std::string_view kEraseRow = "\r\x1b[K";
constexpr std::string_view kPlain = "\x1b[0m";

int64_t count_lines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

Console::Console(Loop& loop, int fd, Settings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      output_(loop, fd, {[this] { on_room(); }, [this](int64_t lines) { lose(lines); }}) {
  if (settings_.fold && settings_.ranks > 1) {
    fold_ = std::make_unique<Fold>(static_cast<size_t>(settings_.ranks));
  }
}

Console::SourceId Console::add_source(int rank, Prefix prefix, bool raw) {
  Source source;
  source.id = ++last_id_;
  source.rank = rank;
  if (fold_) fold_prefixes_[rank] = prefix;
  source.prefix = std::move(prefix);
  source.raw = raw;
  sources_.emplace(last_id_, std::move(source));
  return last_id_;
}

void Console::feed(SourceId id, std::string_view bytes) {
  Source& source = sources_.at(id);
  if (source.raw) {
    put_raw(source, bytes);
    flush();
    return;
  }
  bool held_before = source.splitter.holding();
  source.splitter.feed(bytes, [&](Kind kind, std::string_view text) {
    held_before = false;
    on_piece(source, kind, text);
  });
  if (source.splitter.holding()) {
    if (!held_before) source.hold_until = Clock::now() + kHold;
    schedule(source.hold_until);
  }
  flush();
}

void Console::end(SourceId id) {
  Source& source = sources_.at(id);
  source.splitter.finish([&](Kind kind, std::string_view text) { on_piece(source, kind, text); });
  if (drawn_ == id) {  // a progress bar that wiped itself
    start_line();
    erased_ = 0;
  }
  flush();
  sources_.erase(id);
}

void Console::say(std::string_view line) {
  if (fold_) fold_->flush(-1, emit_folded());
  say_skipped();
  start_line();
  output_.buffer().append(line);
  output_.buffer().append("\n");
  flush();
}

void Console::on_piece(Source& source, Kind kind, std::string_view text) {
  std::string harmless;
  if (output_.terminal() && !source.prefix.empty() && text.find('\x1b') != text.npos) {
    harmless = without_cursor_moves(text);
    text = harmless;
  }
  if (kind == Kind::kProgress) {
    put_progress(source, text);
    return;
  }
  if (kind == Kind::kLines) {
    put_lines(source, text);
  } else if (kind == Kind::kOpen) {
    put_open(source, text);
  } else {
    put_close(source, text);
  }
  source.in_progress = source.undrawn = false;
}

void Console::put_raw(Source& source, std::string_view bytes) {
  if (!has_room(bytes.size(), count_lines(bytes))) return;
  output_.buffer().append(bytes);
  open_ = bytes.back() == '\n' ? 0 : source.id;
}

void Console::put_lines(Source& source, std::string_view lines) {
  if (fold_) {
    Clock::time_point now = Clock::now();
    while (!lines.empty()) {
      size_t end = lines.find('\n') + 1;
      fold_->add(source.rank, lines.substr(0, end), now, emit_folded());
      lines.remove_prefix(end);
    }
    if (!fold_->empty()) schedule(fold_->deadline());
    return;
  }
  if (continues_in_place(source)) {
    // The final state of what was redrawn in place.
    output_.buffer().append(output_.terminal() ? kEraseRow : "\r");
    open_ = 0;
  }
  append_lines(prefix_of(source), lines);
}

void Console::append_lines(std::string_view prefix, std::string_view lines) {
  if (skipping_) {
    skip(count_lines(lines));
    return;
  }
  say_skipped();
  start_line();
  ByteBuffer& out = output_.buffer();
  if (prefix.empty() && lines.size() <= output_.room()) {
    out.append(lines);
    return;
  }
  while (!lines.empty()) {
    size_t end = lines.find('\n') + 1;
    size_t size = prefix.size() + end;
    if (size > output_.room()) {
      skip(count_lines(lines));
      return;
    }
    out.reserve(size);
    char* to = out.data.get() + out.size;
    prefix.copy(to, prefix.size());
    std::memcpy(to + prefix.size(), lines.data(), end);
    out.size += size;
    lines.remove_prefix(end);
  }
}

void Console::put_open(Source& source, std::string_view text) {
  if (fold_) fold_->flush(source.rank, emit_folded());
  std::string_view prefix = prefix_of(source);
  if (!has_room(prefix.size() + text.size(), 0)) return;
  if (continues_in_place(source)) {
    output_.buffer().append(output_.terminal() ? kEraseRow : "\r");
    output_.buffer().append(prefix);
  } else if (open_ != source.id) {
    start_line();
    output_.buffer().append(prefix);
  }
  output_.buffer().append(text);
  open_ = source.id;
}

void Console::put_close(Source& source, std::string_view text) {
  std::string_view prefix = prefix_of(source);
  if (!has_room(prefix.size() + text.size(), 1)) return;
  if (open_ == source.id) {
    open_ = 0;
  } else {
    start_line();
    output_.buffer().append(prefix);
  }
  output_.buffer().append(text);
}

void Console::put_folded(const std::set<int>& ranks, std::string_view line) {
  if (ranks.size() > 1) {
    append_lines("[" + format_ranges({ranks.begin(), ranks.end()}) + "]: ", line);
    return;
  }
  // The source may have ended while its line waited here.
  append_lines(fold_prefixes_[*ranks.begin()].text(std::chrono::system_clock::now()), line);
}

Fold::Emit Console::emit_folded() {
  return [this](const std::set<int>& ranks, std::string_view line) { put_folded(ranks, line); };
}

void Console::put_progress(Source& source, std::string_view state) {
  Clock::time_point now = Clock::now();
  if (!source.in_progress) {
    source.in_progress = true;
    bool as_lines = !output_.terminal() && settings_.ranks > 1;
    source.next_draw =
        std::max(source.next_draw, now + (as_lines ? kProgressLines : Milliseconds(0)));
  }
  source.state = state;
  source.undrawn = true;
  if (now >= draw_time(source)) {
    draw(source);
  } else {
    schedule(draw_time(source));
  }
}

Clock::time_point Console::draw_time(const Source& source) const {
  return output_.terminal() ? std::max(source.next_draw, next_row_) : source.next_draw;
}

// Shows the state of a line that is being redrawn.
void Console::draw(Source& source) {
  source.undrawn = false;
  Clock::time_point now = Clock::now();
  std::string text(prefix_of(source));
  text += source.state;
  if (skipping_ || output_.room() < text.size() + kEraseRow.size()) return;
  if (fold_) fold_->flush(source.rank, emit_folded());
  ByteBuffer& out = output_.buffer();
  if (output_.terminal()) {
    source.next_draw = now + kProgressInterval;
    next_row_ = now + kRowInterval;
    draw_in_row(source, text);
  } else if (settings_.ranks == 1) {
    source.next_draw = now + kProgressInterval;
    if (open_ == source.id) {
      out.append("\r");
    } else {
      start_line();
    }
    out.append(text);
    open_ = source.id;
  } else {
    source.next_draw = now + kProgressLines;
    if (source.state.empty()) return;
    start_line();
    out.append(text);
    out.append("\n");
  }
}

void Console::draw_in_row(Source& source, std::string_view text) {
  if (open_ == source.id) {  // began as an ordinary line
    output_.buffer().append(kEraseRow);
    open_ = 0;
  }
  start_line();
  erased_ = 0;
  if (source.state.empty()) return;
  std::string_view shown = clip_to_columns(text, output_.columns() - 1);
  output_.buffer().append(shown);
  // What was cut off may have ended a colour.
  if (shown.size() < text.size() && shown.find('\x1b') != text.npos) {
    output_.buffer().append(kPlain);
  }
  drawn_ = source.id;
}

// Puts back the progress that had to be erased for the lines before.
void Console::redraw() {
  auto source = sources_.find(erased_);
  erased_ = 0;
  // Not below somebody's unfinished line: its rest is to follow it.
  if (open_ != 0 || source == sources_.end() || !source->second.in_progress) return;
  draw(source->second);
}

// Makes sure that what comes next starts a line of the console.
void Console::start_line() {
  if (drawn_ != 0) {
    output_.buffer().append(kEraseRow);
    erased_ = drawn_;
    drawn_ = 0;
  } else if (open_ != 0) {
    output_.buffer().append("\n");
    open_ = 0;
  }
}

// Whether the source's line stands open at the console's end and is being redrawn there.
bool Console::continues_in_place(const Source& source) const {
  return open_ == source.id && source.in_progress && (output_.terminal() || settings_.ranks == 1);
}

bool Console::has_room(size_t bytes, int64_t lines) {
  if (skipping_ || bytes + 2 * kEraseRow.size() > output_.room()) {
    skip(lines);
    return false;
  }
  say_skipped();
  return true;
}

void Console::skip(int64_t lines) {
  skipping_ = true;
  skipped_ += lines;
}

// These lines were in a write that failed (a full disk). The next line tries again, and says so.
void Console::lose(int64_t lines) {
  // A notice that was lost with them is said again.
  if (said_skipped_ > 0) lines += said_skipped_ - 1;
  said_skipped_ = 0;
  skipped_ += lines;
}

void Console::say_skipped() {
  if (skipped_ == 0) return;
  start_line();
  output_.buffer().append("muster: " + std::to_string(skipped_) +
                          " lines skipped here: this console could not keep up" +
                          (settings_.files_kept ? "; the log files have them\n" : "\n"));
  said_skipped_ += skipped_;
  skipped_ = 0;
}

void Console::on_room() {
  said_skipped_ = 0;
  if (skipping_ && output_.room() > ConsoleOutput::kBacklog / 2) {
    skipping_ = false;
    say_skipped();
    flush();
  }
  settings_.on_room();
}

void Console::flush() {
  if (erased_ != 0) redraw();
  output_.flush();
}

std::string_view Console::prefix_of(Source& source) {
  if (!source.prefix.has_time()) return source.prefix.text({});
  return source.prefix.text(std::chrono::system_clock::now());
}

void Console::schedule(Clock::time_point at) {
  if (tick_ && tick_at_ <= at) return;
  tick_at_ = at;
  auto delay = std::chrono::ceil<Milliseconds>(at - Clock::now());
  tick_ = Timer::start(loop_, std::max(delay, Milliseconds(0)), [this] { on_tick(); });
}

void Console::on_tick() {
  tick_.reset();
  Clock::time_point now = Clock::now();
  if (fold_) {
    fold_->advance(now, emit_folded());
    if (!fold_->empty()) schedule(fold_->deadline());
  }
  release_due(now);
  draw_due(now);
  flush();
}

// Shows the beginnings that have waited for kHold.
void Console::release_due(Clock::time_point now) {
  for (auto& [id, each] : sources_) {
    Source& source = each;
    if (!source.splitter.holding()) continue;
    if (source.hold_until > now) {
      schedule(source.hold_until);
      continue;
    }
    source.splitter.release(
        [&](Kind kind, std::string_view text) { on_piece(source, kind, text); });
  }
}

// The row that the ranks share goes to the one that has waited longest.
void Console::draw_due(Clock::time_point now) {
  Source* first = nullptr;
  for (auto& [id, source] : sources_) {
    if (source.undrawn && (first == nullptr || source.next_draw < first->next_draw))
      first = &source;
  }
  if (first == nullptr) return;
  if (now >= draw_time(*first)) draw(*first);
  for (auto& [id, source] : sources_) {
    if (source.undrawn) schedule(std::max(draw_time(source), now));
  }
}

}  // namespace muster
