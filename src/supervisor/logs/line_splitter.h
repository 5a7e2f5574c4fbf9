// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster {

// Cuts one stream into what a console can show: whole lines, pieces of a line that is not finished,
// and states of a line that is being redrawn with carriage returns. Pure: knows no time and no
// console; its owner decides how long a beginning is held. Bytes are passed on unchanged, except
// that of a redrawn line only the last state is left.
class LineSplitter {
 public:
  enum class Kind {
    kLines,     // one or more whole lines, each with its '\n', from a true line start
    kOpen,      // a line's beginning, or more of it, without its end
    kClose,     // the rest, with its '\n', of a line of which kOpen was given before
    kProgress,  // what a redrawn line looks like now; replaces the earlier state
  };
  using Emit = std::function<void(Kind kind, std::string_view text)>;

  // A beginning longer than this is given out at once, in pieces, between which others may write.
  static constexpr size_t kHoldLimit = 1024 * 1024;
  // The same for a line that was redrawn.
  static constexpr size_t kProgressLimit = 64 * 1024;

  void feed(std::string_view bytes, const Emit& emit);

  // The held beginning has waited long enough.
  void release(const Emit& emit);

  // The stream has ended: gives out what is left, as kOpen.
  void finish(const Emit& emit);

  // A beginning is held that nobody has seen.
  bool holding() const { return !held_.empty() && !progress_; }

 private:
  void hold(std::string_view bytes, const Emit& emit);
  void end_line(std::string_view rest, const Emit& emit);
  void forget_held();
  std::string_view feed_lines(std::string_view bytes, const Emit& emit);

  std::string held_;       // of the current line, not given out or (progress_) its present state
  bool open_ = false;      // kOpen was given for the current line
  bool progress_ = false;  // the current line was redrawn
};

}  // namespace muster
