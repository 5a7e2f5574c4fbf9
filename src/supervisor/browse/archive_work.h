// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/gzip.h"
#include "supervisor/browse/log_bytes.h"

namespace muster {

// Packs logs into a .tar.gz, piece by piece on the pool: those of this machine from their files,
// others as their bytes come. Made by LogArchive, which gives it its turns.
class ArchiveWork {
 public:
  static constexpr size_t kMaxTroubles = 100;

  // What is to be packed, in order.
  struct Step {
    enum class Kind { kLog, kBegin, kBytes, kEnd, kFinish } kind = Kind::kFinish;
    std::string name;    // in the archive, of kLog and kBegin
    std::string bytes;   // of kBytes; the path of kLog
    int64_t size = 0;    // of kBegin
    int64_t time_s = 0;  // of kBegin
  };
  void add(Step step) { steps_.push_back(std::move(step)); }

  // One piece.
  void run();

  std::string take_packed() { return std::exchange(packed_, {}); }
  // Everything that was given is packed.
  bool idle() const { return steps_.empty(); }
  bool finished() const { return finished_; }
  // Bytes of kBytes that are not packed.
  size_t backlog() const;
  // What could not be packed as it should.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  struct OpenLog {
    LogBytes bytes;
    int64_t position = 0;
    int64_t end = 0;
    std::string marker;  // that stands for the hole; "" behind it
  };

  bool do_step(Step& step);
  bool pack_log(const Step& step);
  Result<bool> open_log(const Step& step);
  void begin_file(const std::string& name, int64_t size, int64_t time_s);
  void put(std::string_view bytes);
  void end_file();
  void note(std::string trouble);

  std::deque<Step> steps_;
  std::optional<OpenLog> log_;
  std::optional<GzipWriter> gzip_ = std::make_optional<GzipWriter>();
  std::string packed_;
  std::string name_;  // of the file that is being packed
  int64_t size_ = 0;  // of it
  int64_t left_ = 0;  // bytes of it that are still to come
  int64_t budget_ = 0;
  bool finished_ = false;
  std::vector<std::string> troubles_;
};

}  // namespace muster
