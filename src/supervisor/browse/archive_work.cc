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
  return "[muster: " + std::to_string(left_out) + " bytes were left out here]\n";
}

}  // namespace

void ArchiveWork::run() {
  budget_ = kPiece;
  while (budget_ > 0 && !steps_.empty() && do_step(steps_.front()))
    steps_.pop_front();
}

size_t ArchiveWork::backlog() const {
  size_t sum = 0;
  for (const Step& step : steps_)
    sum += step.kind == Step::Kind::kBytes ? step.bytes.size() : 0;
  return sum;
}

// True when it is done.
bool ArchiveWork::do_step(Step& step) {
  switch (step.kind) {
    case Step::Kind::kLog:
      return pack_log(step);
    case Step::Kind::kBegin:
      begin_file(step.name, step.size, step.time_s);
      return true;
    case Step::Kind::kBytes:
      put(step.bytes);
      return true;
    case Step::Kind::kEnd:
      end_file();
      return true;
    case Step::Kind::kFinish:
      if (finished_) return true;
      packed_ += gzip_->add(tar_end());
      packed_ += gzip_->finish();
      gzip_.reset();
      finished_ = true;
      return true;
  }
  return true;
}

bool ArchiveWork::pack_log(const Step& step) {
  if (!log_) {
    budget_ -= kOpening;
    auto opened = open_log(step);
    if (!opened) note(opened.error().message);
    if (!opened || !*opened) return true;
  }
  while (budget_ > 0 && log_->position < log_->end) {
    auto piece = log_->bytes.read(log_->position, std::min(kRead, log_->end - log_->position));
    if (!piece) {
      note(piece.error().message);
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
Result<bool> ArchiveWork::open_log(const Step& step) {
  auto opened = LogBytes::open(step.bytes);
  if (!opened) return opened.error();
  if (!*opened) return false;
  const LogLayout layout = (*opened)->layout();
  struct stat info {};
  const bool known = stat(step.bytes.c_str(), &info) == 0;
  const int64_t hole = layout.hole_end() - layout.hole_begin();
  log_.emplace(OpenLog{std::move(**opened), 0, layout.size(), hole > 0 ? marker_text(hole) : ""});
  begin_file(step.name, layout.size() - hole + std::ssize(log_->marker),
             known ? info.st_mtime : std::time(nullptr));
  return true;
}

void ArchiveWork::begin_file(const std::string& name, int64_t size, int64_t time_s) {
  name_ = name;
  size_ = left_ = size;
  packed_ += gzip_->add(tar_header(name, size, time_s));
}

// More than was announced is not packed.
void ArchiveWork::put(std::string_view bytes) {
  bytes = bytes.substr(0, static_cast<size_t>(std::min(left_, std::ssize(bytes))));
  left_ -= std::ssize(bytes);
  budget_ -= std::ssize(bytes);
  packed_ += gzip_->add(bytes);
}

void ArchiveWork::end_file() {
  if (left_ > 0)
    note(name_ + ": its last " + std::to_string(left_) +
         " bytes could not be read and are zeros here");
  const std::string zeros(static_cast<size_t>(std::min(left_, kRead)), '\0');
  while (left_ > 0)
    put(zeros);
  packed_ += gzip_->add(tar_padding(size_));
}

void ArchiveWork::note(std::string trouble) {
  if (troubles_.size() < kMaxTroubles) troubles_.push_back(std::move(trouble));
}

}  // namespace muster
