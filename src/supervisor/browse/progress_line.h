// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

// How far a program says it is.
struct Progress {
  int64_t step = -1;
  int64_t steps = -1;  // how many there will be
  double steps_per_s = -1;
  std::optional<double> loss;  // may be NaN or infinite: that is news

  bool any() const { return step >= 0 || steps_per_s >= 0 || loss.has_value(); }
  // What `newer` does not say stays. A step without its total belongs to the total before.
  void update(const Progress& newer);

  bool operator==(const Progress&) const = default;
};

// What one line of output says about progress: "step 812/1000", "iteration 10/ 100 | lm loss: 1.2",
// "epoch 3: 45%|████ | 450/1000 [00:10<00:12, 3.1it/s, loss=0.53]", "{'loss': 0.53}". Of a line
// that is redrawn with carriage returns the last state counts, of a long one its last
// kMaxProgressLine bytes. Escape sequences do not disturb. Losses of validation are not meant.
// Pure.
constexpr size_t kMaxProgressLine = 4096;
Progress parse_progress(std::string_view line);

}  // namespace muster
