// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "loop/result.h"
#include "supervisor/browse/indexed_log.h"
#include "supervisor/browse/line_cutter.h"
#include "supervisor/browse/line_starts.h"
#include "supervisor/browse/log_page.h"

namespace muster {

// Makes one page of a log, in pieces on the pool: finds where it begins, cuts the lines, adds their
// numbers and times. Made by the LogReader, which gives it its turns.
class PageWork {
 public:
  // A page does not wait for its lines' numbers if more than this has to be counted for them.
  static constexpr int64_t kCountForNumbers = int64_t{16} << 20;

  PageWork(std::shared_ptr<IndexedLog> log, LogQuery query, int64_t count = kCountForNumbers);

  // One piece; true when the page is there.
  bool run();
  // Then, once.
  Result<LogPage> take();

 private:
  enum class Step {
    kOpen,
    kBack,     // looks for the page's first line backwards
    kCount,    // counts lines up to the one that is wanted
    kForward,  // looks for it from a known line start before it
    kNumber,   // looks for the number of the page's first line
    kPass,     // counts up to it from a known line start
    kCollect,
    kDone,
  };

  Result<void> step();
  Result<void> reopen();
  Result<void> open();
  Result<void> find_offset();
  Result<void> find_time();
  Result<void> look_back();
  Result<void> count();
  Result<void> look_forward();
  Result<void> number();
  Result<void> pass();
  void begin_collecting(int64_t number);
  Result<void> collect();
  Result<bool> is_line_start(int64_t offset);
  void look_forward_from(int64_t offset, int64_t lines);
  void begin_page(int64_t offset);
  void finish();

  std::shared_ptr<IndexedLog> indexed_;
  LogQuery query_;
  int64_t count_;
  std::optional<LogBytes> log_;  // while a piece runs
  LogBytes::Identity identity_;
  Step step_ = Step::kOpen;
  int64_t budget_ = 0;
  int64_t end_ = INT64_MAX;  // the page's lines begin before it
  std::optional<LineStarts> back_;
  int64_t position_ = 0;  // of kForward and kPass
  int64_t lines_ = 0;     // that kForward still has to pass, that kPass has passed
  int64_t begin_ = 0;     // of the page
  std::optional<LineCutter> cutter_;
  LogPage page_;
  std::optional<Error> error_;
};

}  // namespace muster
