// SPDX-License-Identifier: Apache-2.0
//
// A file's size stands before its bytes. A log that grows meanwhile is packed as long as it was; of
// one that loses bytes meanwhile the rest is zeros, and a note says so.
#include "supervisor/browse/archive_work.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "supervisor/browse/tar.h"

namespace muster {

namespace {

// The fastest level packs about 200 MB a second.
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int64_t kRead = 128 << 10;
constexpr int64_t kOpening = 16 << 10;

std::string marker_text(int64_t left_out) {
  return "[muster: " + std::to_string(left_out) + " bytes are left out here]\n";
}

}  // namespace

bool ArchiveWork::run() {
  budget_ = kPiece;
  while (next_ < entries_.size() && budget_ > 0 && pack(entries_[next_]))
    ++next_;
  if (next_ < entries_.size()) return false;
  packed_ += gzip_.finish();
  return true;
}

// True when it is done.
bool ArchiveWork::pack(const ArchiveEntry& entry) {
  if (!log_) {
    budget_ -= kOpening;
    auto opened = open(entry);
    if (!opened) note(entry.name + ": " + opened.error().message);
    if (!opened || !*opened) return true;
  }
  while (budget_ > 0 && log_->position < log_->end) {
    auto piece = log_->bytes.read(log_->position, std::min(kRead, log_->end - log_->position));
    if (!piece) {
      note(entry.name + ": " + piece.error().message);
      break;
    }
    if (piece->bytes.empty() || piece->offset >= log_->end) break;
    if (piece->offset != log_->position) put(std::exchange(log_->marker, {}));
    put(piece->bytes);
    log_->position = piece->offset + std::ssize(piece->bytes);
  }
  if (budget_ <= 0 && log_->position < log_->end) return false;
  log_.reset();
  end_file();
  return true;
}

// False: there is no such log, which is usual: its worker has written nothing.
Result<bool> ArchiveWork::open(const ArchiveEntry& entry) {
  auto opened = LogBytes::open(entry.path);
  if (!opened) return opened.error();
  if (!*opened) return false;
  const LogLayout layout = (*opened)->layout();
  struct stat info {};
  const bool known = stat(entry.path.c_str(), &info) == 0;
  const int64_t hole = layout.hole_end() - layout.hole_begin();
  log_.emplace(OpenLog{std::move(**opened), 0, layout.size(), hole > 0 ? marker_text(hole) : ""});
  size_ = left_ = layout.size() - hole + std::ssize(log_->marker);
  packed_ += gzip_.add(tar_header(entry.name, size_, known ? info.st_mtime : std::time(nullptr)));
  return true;
}

// More than was announced is not packed.
void ArchiveWork::put(std::string_view bytes) {
  bytes = bytes.substr(0, static_cast<size_t>(std::min(left_, std::ssize(bytes))));
  left_ -= std::ssize(bytes);
  budget_ -= std::ssize(bytes);
  packed_ += gzip_.add(bytes);
}

void ArchiveWork::end_file() {
  if (left_ > 0)
    note(entries_[next_].name + ": its last " + std::to_string(left_) +
         " bytes were gone before they could be read, and are zeros here");
  const std::string zeros(static_cast<size_t>(std::min(left_, kRead)), '\0');
  while (left_ > 0)
    put(zeros);
  packed_ += gzip_.add(tar_padding(size_));
}

void ArchiveWork::note(std::string trouble) {
  if (troubles_.size() < kMaxTroubles) troubles_.push_back(std::move(trouble));
}

std::string archive_end(const std::vector<std::string>& notes, int64_t unix_time) {
  std::string text;
  for (const std::string& note : notes)
    text += note + "\n";
  GzipWriter gzip;
  std::string packed;
  if (!text.empty()) {
    packed += gzip.add(tar_header("muster-notes.txt", std::ssize(text), unix_time));
    packed += gzip.add(text);
    packed += gzip.add(tar_padding(std::ssize(text)));
  }
  packed += gzip.add(tar_end());
  return packed += gzip.finish();
}

}  // namespace muster
