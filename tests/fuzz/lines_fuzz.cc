// SPDX-License-Identifier: Apache-2.0
//
// A worker's stream on its way to the console: the first byte says how the rest is cut and when the
// held beginning is released. Bytes without '\r' come out as they went in; whatever comes, the
// pieces fit together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "loop/check.h"
#include "supervisor/logs/fold.h"
#include "supervisor/logs/line_splitter.h"
#include "supervisor/logs/prefix.h"

namespace muster {
namespace {

struct Checked {
  LineSplitter splitter;
  std::string out;
  bool open = false;

  LineSplitter::Emit emit() {
    return [this](LineSplitter::Kind kind, std::string_view text) { on_piece(kind, text); };
  }
  void on_piece(LineSplitter::Kind kind, std::string_view text) {
    size_t newline = text.find('\n');
    switch (kind) {
      case LineSplitter::Kind::kLines:
        MUST(!text.empty() && text.back() == '\n');
        open = false;
        break;
      case LineSplitter::Kind::kOpen:
        MUST(!text.empty() && newline == std::string_view::npos);
        open = true;
        break;
      case LineSplitter::Kind::kClose:
        MUST(open && newline == text.size() - 1);
        open = false;
        break;
      case LineSplitter::Kind::kProgress:
        MUST(text.find_first_of("\r\n") == std::string_view::npos);
        return;
    }
    out += text;
  }
};

void check_lines(uint8_t seed, std::string_view input) {
  Checked checked;
  uint32_t state = seed;
  for (std::string_view rest = input; !rest.empty();) {
    state = state * 1664525 + 1013904223;
    size_t piece = 1 + (state >> 16) % (seed < 128 ? 4 : 4096);
    checked.splitter.feed(rest.substr(0, piece), checked.emit());
    if ((state >> 8) % 8 == 0) {
      checked.splitter.release(checked.emit());
      MUST(!checked.splitter.holding());
    }
    rest.remove_prefix(std::min(piece, rest.size()));
  }
  checked.splitter.finish(checked.emit());
  if (input.find('\r') == std::string_view::npos) MUST(checked.out == input);
  MUST(checked.out.size() <= input.size());
}

// Each line is of the rank in its first byte; every one comes out, under its rank and in its order.
void check_fold(std::string_view input) {
  Fold fold(4);
  std::string in[4], out[4];
  Fold::Emit emit = [&](const std::set<int>& ranks, std::string_view line) {
    for (int rank : ranks)
      out[rank] += line;
  };
  Clock::time_point now{};
  while (input.find('\n') != std::string_view::npos) {
    size_t end = input.find('\n') + 1;
    std::string_view line = input.substr(0, end);
    int rank = static_cast<unsigned char>(line[0]) % 4;
    std::string_view text = line.size() > 1 ? line.substr(1) : line;
    in[rank] += text;
    fold.add(rank, text, now, emit);
    now += Milliseconds(end % 70);
    input.remove_prefix(end);
  }
  fold.flush(-1, emit);
  for (int rank = 0; rank < 4; ++rank)
    MUST(in[rank] == out[rank]);
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  muster::check_lines(data[0], input);
  muster::check_fold(input);
  muster::Prefix(input, {{"rank", "7"}, {"role_name", "r"}}).text({});
  return 0;
}
