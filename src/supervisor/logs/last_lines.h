// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

// Bytes that came from one stream before the other brought something.
struct ArrivedPiece {
  Stream stream = Stream::kStdout;
  size_t bytes = 0;
};

// In which order the bytes of a worker's two streams came, as far back as kMaxPieces pieces reach;
// when they are full, the older half is forgotten.
class ArrivalOrder {
 public:
  static constexpr size_t kMaxPieces = 512;

  void add(Stream stream, size_t bytes);
  std::span<const ArrivedPiece> pieces() const { return pieces_; }

 private:
  std::vector<ArrivedPiece> pieces_;
};

struct StreamLine {
  Stream stream = Stream::kStdout;
  std::string text;  // as it was written, without its newline

  bool operator==(const StreamLine&) const = default;
};

// The end of what one stream brought.
struct StreamEnd {
  std::string_view text;
  size_t behind = 0;  // bytes that came after it
};

// The last lines of both streams, `count` at most, in the order in which they came. A line came
// when its newline did; one without a newline when its last byte did. Lines that the pieces do not
// reach are left out.
std::vector<StreamLine> lines_in_order(const StreamEnd& out, const StreamEnd& err,
                                       std::span<const ArrivedPiece> pieces, size_t count);

}  // namespace muster
