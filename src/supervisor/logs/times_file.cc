// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/times_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster {

void TimesFile::note(int64_t offset, int64_t time_us) {
  if (given_up_) return;
  if (!fd_) {
    fd_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd_) return give_up();
  }
  TimesEncoder::Bytes entry = encoder_.add({offset, time_us});
  if (entry.bytes.empty()) return;
  if (started_us_ == 0) {
    started_us_ = std::max<int64_t>(time_us, 1);
    LogCut nothing;
    nothing.started_us = started_us_;
    entry.bytes.insert(0, encode_cut(nothing));
    entry.place = 0;
  }
  if (!write(entry.place, entry.bytes)) give_up();
}

void TimesFile::put_cut(LogCut cut) {
  if (given_up_ || started_us_ == 0) return;
  cut.started_us = started_us_;
  if (!write(0, encode_cut(cut))) give_up();
}

void TimesFile::restart() {
  if (given_up_ || !fd_) return;
  if (ftruncate(fd_.get(), 0) != 0) return give_up();
  encoder_ = TimesEncoder();
  started_us_ = 0;
}

bool TimesFile::write(int64_t place, const std::string& bytes) {
  ssize_t n;
  do {
    n = pwrite(fd_.get(), bytes.data(), bytes.size(), place);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(bytes.size());
}

void TimesFile::give_up() {
  given_up_ = true;
  if (!fd_) return;
  [[maybe_unused]] int emptied = ftruncate(fd_.get(), 0);
  unlink(path_.c_str());
  fd_.reset();
}

}  // namespace muster
