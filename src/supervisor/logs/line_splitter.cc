// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/line_splitter.h"

#include <cstring>

namespace muster {

namespace {

constexpr size_t kNone = std::string_view::npos;

// The first '\r' that redraws: one that neither belongs to "\r\n" nor stands at the very end, where
// it may still become one.
size_t find_redraw(std::string_view text) {
  for (size_t at = text.find('\r'); at != kNone; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size()) return kNone;
    if (text[at + 1] != '\n') return at;
  }
  return kNone;
}

size_t find_last(std::string_view text, char byte) {
  const void* at = memrchr(text.data(), byte, text.size());
  return at == nullptr ? kNone : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

// What is left on the screen after all redrawing: the last segment that is not empty.
std::string_view last_state(std::string_view text) {
  size_t end = text.find_last_not_of('\r');
  if (end == kNone) return {};
  size_t before = text.rfind('\r', end);
  size_t begin = before == kNone ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

// Programs wipe their progress bar by overwriting it with spaces.
std::string_view without_blank(std::string_view state) {
  return state.find_first_not_of(' ') == kNone ? std::string_view() : state;
}

}  // namespace

void LineSplitter::feed(std::string_view bytes, const Emit& emit) {
  while (!bytes.empty()) {
    if (held_.empty() && !open_ && !progress_) {
      std::string_view rest = feed_lines(bytes, emit);
      if (rest.size() != bytes.size()) {
        bytes = rest;
        continue;
      }
    }
    size_t end = bytes.find('\n');
    if (end == kNone) {
      hold(bytes, emit);
      return;
    }
    end_line(bytes.substr(0, end + 1), emit);
    bytes.remove_prefix(end + 1);
  }
}

// At a line start: gives out all whole lines in one piece, or all up to the first redrawn one and
// that one reduced. Returns what is left.
std::string_view LineSplitter::feed_lines(std::string_view bytes, const Emit& emit) {
  size_t last = find_last(bytes, '\n');
  if (last == kNone) return bytes;
  std::string_view lines = bytes.substr(0, last + 1);
  size_t redraw = find_redraw(lines);
  if (redraw == kNone) {
    emit(Kind::kLines, lines);
    return bytes.substr(lines.size());
  }
  size_t before = lines.substr(0, redraw).rfind('\n');
  size_t begin = before == kNone ? 0 : before + 1;
  if (begin > 0) emit(Kind::kLines, lines.substr(0, begin));
  size_t end = lines.find('\n', redraw) + 1;
  end_line(lines.substr(begin, end - begin), emit);
  return bytes.substr(end);
}

void LineSplitter::hold(std::string_view bytes, const Emit& emit) {
  // Only what is new may redraw, or a '\r' that stood at the very end.
  size_t seen = held_.empty() ? 0 : held_.size() - 1;
  held_ += bytes;
  if (find_redraw(std::string_view(held_).substr(seen)) != kNone) {
    progress_ = true;
    bool trailing = held_.back() == '\r';
    std::string state(last_state(held_));
    held_ = std::move(state);
    if (trailing) held_ += '\r';
  }
  if (held_.size() > (progress_ ? kProgressLimit : kHoldLimit)) {
    // Too long to be held, and no progress bar either.
    emit(Kind::kOpen, held_);
    forget_held();
    open_ = true;
    progress_ = false;
  } else if (progress_) {
    emit(Kind::kProgress, without_blank(last_state(held_)));
  }
}

void LineSplitter::end_line(std::string_view rest, const Emit& emit) {
  if (!held_.empty()) {
    held_ += rest;
    rest = held_;
  }
  if (find_redraw(rest) != kNone) {
    progress_ = true;
    bool crlf = rest.size() >= 2 && rest[rest.size() - 2] == '\r';
    std::string line(last_state(rest.substr(0, rest.size() - (crlf ? 2 : 1))));
    line += crlf ? "\r\n" : "\n";
    emit(Kind::kLines, line);
  } else {
    emit(open_ && !progress_ ? Kind::kClose : Kind::kLines, rest);
  }
  forget_held();
  open_ = progress_ = false;
}

// The memory of a long line goes too: there may be many streams.
void LineSplitter::forget_held() {
  held_.clear();
  if (held_.capacity() > kProgressLimit) held_.shrink_to_fit();
}

void LineSplitter::release(const Emit& emit) {
  if (!holding()) return;
  if (held_.back() == '\r') {
    progress_ = true;
    emit(Kind::kProgress, without_blank(last_state(held_)));
    return;
  }
  emit(Kind::kOpen, held_);
  forget_held();
  open_ = true;
}

void LineSplitter::finish(const Emit& emit) {
  std::string_view rest = progress_ ? without_blank(last_state(held_)) : std::string_view(held_);
  if (!rest.empty()) emit(Kind::kOpen, rest);
  held_.clear();
  open_ = progress_ = false;
}

}  // namespace muster
