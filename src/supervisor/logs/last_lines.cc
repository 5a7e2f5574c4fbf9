// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/last_lines.h"

#include <algorithm>
#include <cstddef>

namespace muster {

namespace {

// Goes through the lines of one stream from the last one back.
class Backward {
 public:
  explicit Backward(const StreamEnd& end) : rest_(end.text), at_(end.text.size() + end.behind) {}

  // To the start of a piece that ends where the one before it started.
  void over(size_t bytes) { at_ -= std::min(bytes, at_); }

  // Whether the last line that was not taken yet ends behind that start.
  bool has_line() const { return rest_.size() > at_; }

  std::string_view take() {
    std::string_view line = rest_;
    if (line.back() == '\n') line.remove_suffix(1);
    const size_t newline = line.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    rest_ = rest_.substr(0, start);
    return line.substr(start);
  }

 private:
  std::string_view rest_;
  size_t at_;
};

}  // namespace

void ArrivalOrder::add(Stream stream, size_t bytes) {
  if (!pieces_.empty() && pieces_.back().stream == stream) {
    pieces_.back().bytes += bytes;
    return;
  }
  if (pieces_.size() == kMaxPieces) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(kMaxPieces / 2));
  }
  pieces_.push_back({stream, bytes});
}

std::vector<StreamLine> lines_in_order(const StreamEnd& out, const StreamEnd& err,
                                       std::span<const ArrivedPiece> pieces, size_t count) {
  Backward of_out(out);
  Backward of_err(err);
  std::vector<StreamLine> lines;
  for (size_t i = pieces.size(); i > 0 && lines.size() < count; --i) {
    const ArrivedPiece& piece = pieces[i - 1];
    Backward& of = piece.stream == Stream::kStdout ? of_out : of_err;
    of.over(piece.bytes);
    while (lines.size() < count && of.has_line())
      lines.push_back({piece.stream, std::string(of.take())});
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace muster
