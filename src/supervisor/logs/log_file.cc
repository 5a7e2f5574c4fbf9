// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <utility>
#include <vector>

#include "supervisor/logs/newlines.h"

namespace muster {

namespace {

constexpr int64_t kMovePiece = 256 * 1024;
constexpr int64_t kLineSearch = 4 * 1024;  // how far a cut looks for the start of a line
// Of fixed length, because it is written again at every cut.
constexpr char kMarker[] = "\n[muster: %020" PRId64
                           " bytes are left out here: this log keeps its first and newest part]\n";
static_assert(LogFile::kMarkerLength == sizeof(kMarker) - sizeof("%020" PRId64) + 20);

}  // namespace

Result<std::shared_ptr<LogFile>> LogFile::create(std::string path, int64_t limit) {
  std::shared_ptr<LogFile> file = create_later(std::move(path), limit);
  if (int error = file->open_file(); error != 0) {
    return errno_error(error, "open " + file->path_);
  }
  return file;
}

std::shared_ptr<LogFile> LogFile::create_later(std::string path, int64_t limit) {
  return std::shared_ptr<LogFile>(new LogFile(std::move(path), limit));
}

LogFile::LogFile(std::string path, int64_t limit)
    : path_(std::move(path)), limit_(limit > 0 ? std::max(limit, kMinLimit) : 0) {}

int LogFile::open_file() {
  // A bounded file is written at offsets, which O_APPEND would override, and read by its cut.
  int flags = limit_ > 0 ? O_RDWR : O_WRONLY | O_APPEND;
  fd_.reset(open(path_.c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  return fd_ ? 0 : errno;
}

LogFile::Written LogFile::append(std::string_view bytes, int64_t arrived_us) {
  if (!fd_) {
    if (int error = open_file(); error != 0) return {error, static_cast<int64_t>(bytes.size())};
  }
  if (limit_ == 0 && !times_) return write_at_end(bytes);
  note_outside_changes();
  if (times_) note_arrival(arrived_us);
  if (limit_ == 0) return write_at_end(bytes);
  Written written = write_at_end(bytes);
  if (!cutting_ && size_ > limit_) begin_cut();
  // More than was appended, so that the cut catches up.
  if (cutting_) go_on_cutting(2 * static_cast<int64_t>(bytes.size()) + kMovePiece);
  return written;
}

LogFile::Written LogFile::write_at_end(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = limit_ == 0 ? write(fd_.get(), bytes.data(), bytes.size())
                            : pwrite(fd_.get(), bytes.data(), bytes.size(), size_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {n < 0 ? errno : EIO, static_cast<int64_t>(bytes.size())};
    size_ += n;
    stream_size_ += n;
    std::string_view written = bytes.substr(0, static_cast<size_t>(n));
    if (times_ && limit_ > 0 && stream_lines_ >= 0) stream_lines_ += count_newlines(written);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// Whoever empties the file while we write it (`> stdout.log`) gets a file that starts anew, not one
// with a hole.
void LogFile::note_outside_changes() {
  struct stat now;
  if (fstat(fd_.get(), &now) != 0 || now.st_size >= size_) return;
  size_ = now.st_size;
  cutting_ = false;
  if (size_ < head_end_ + kMarkerLength) head_end_ = left_out_ = 0;
  stream_size_ = head_end_ == 0 ? size_ : size_ - kMarkerLength + left_out_;
  stream_lines_ = size_ == 0 ? 0 : -1;
  counted_to_ = counted_lines_ = 0;
  cut_to_note_ = head_end_ != 0;
  if (times_) times_->restart();
}

// Before the bytes are in the file, so that who finds them there finds their time.
void LogFile::note_arrival(int64_t arrived_us) {
  times_->note(stream_size_, arrived_us);
  if (std::exchange(cut_to_note_, false)) note_cut();
}

void LogFile::note_cut() {
  if (!times_) return;
  LogCut cut;
  cut.head_end = head_end_;
  cut.left_out = left_out_;
  if (cutting_) cut.to = to_;
  if (cutting_) cut.from = from_;
  cut.counted_to = counted_to_;
  cut.counted_lines = counted_lines_;
  times_->put_cut(cut);
}

void LogFile::begin_cut() {
  int64_t left_out_from = head_end_ + kMarkerLength;
  if (head_end_ == 0) left_out_from = head_end_ = line_start_before(limit_ / 8);
  to_ = head_end_ + kMarkerLength;
  from_ = line_start_before(size_ - limit_ * 3 / 8);
  left_out_ += from_ - left_out_from;
  if (stream_lines_ >= 0) {
    counted_to_ = stream_size_;
    counted_lines_ = stream_lines_;
  }
  cutting_ = true;
  note_cut();
  write_marker();
}

void LogFile::go_on_cutting(int64_t budget) {
  std::vector<char> piece(static_cast<size_t>(std::min(budget, kMovePiece)));
  while (from_ < size_) {
    if (budget <= 0) return;
    // Never over bytes of its own that were not moved before: a crash finds them all.
    size_t want = static_cast<size_t>(
        std::min({static_cast<int64_t>(piece.size()), size_ - from_, from_ - to_}));
    ssize_t n = pread(fd_.get(), piece.data(), want, from_);
    if (n > 0) n = pwrite(fd_.get(), piece.data(), static_cast<size_t>(n), to_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // goes on with the next append
    from_ += n;
    to_ += n;
    budget -= n;
    note_cut();
  }
  if (ftruncate(fd_.get(), to_) != 0) return;
  size_ = to_;
  cutting_ = false;
  note_cut();
}

void LogFile::finish() {
  if (!cutting_) return;
  note_outside_changes();
  if (cutting_) go_on_cutting(INT64_MAX);
}

void LogFile::write_marker() {
  char marker[sizeof(kMarker) + 20];
  int length = std::snprintf(marker, sizeof marker, kMarker, left_out_);
  // The marker replaces bytes that are left out anyway; if it cannot be written they stay.
  [[maybe_unused]] ssize_t n = pwrite(fd_.get(), marker, static_cast<size_t>(length), head_end_);
}

// Where the line that contains `offset` starts; `offset` itself if that is far away.
int64_t LogFile::line_start_before(int64_t offset) const {
  std::string text(static_cast<size_t>(kLineSearch), '\0');
  int64_t begin = offset - kLineSearch;
  if (pread(fd_.get(), text.data(), text.size(), begin) != kLineSearch) return offset;
  size_t newline = text.rfind('\n');
  return newline == std::string::npos ? offset : begin + static_cast<int64_t>(newline) + 1;
}

}  // namespace muster
