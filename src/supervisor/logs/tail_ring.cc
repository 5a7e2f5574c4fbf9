// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/tail_ring.h"

#include <algorithm>
#include <cstring>

namespace muster {

void TailRing::append(std::string_view bytes) {
  if (bytes.size() >= kLimit) {
    ring_.assign(bytes.substr(bytes.size() - kLimit));
    begin_ = 0;
    return;
  }
  size_t grow = std::min(kLimit - ring_.size(), bytes.size());
  ring_ += bytes.substr(0, grow);
  bytes.remove_prefix(grow);
  while (!bytes.empty()) {
    size_t piece = std::min(kLimit - begin_, bytes.size());
    std::memcpy(ring_.data() + begin_, bytes.data(), piece);
    begin_ = (begin_ + piece) % kLimit;
    bytes.remove_prefix(piece);
  }
}

std::string TailRing::text() const {
  return ring_.substr(begin_) + ring_.substr(0, begin_);
}

std::string TailRing::last(size_t count) const {
  if (count >= ring_.size()) return text();
  const size_t newest = begin_ == 0 ? ring_.size() : begin_;  // behind the newest byte
  if (count <= newest) return ring_.substr(newest - count, count);
  return ring_.substr(ring_.size() - (count - newest)) + ring_.substr(0, newest);
}

}  // namespace muster
