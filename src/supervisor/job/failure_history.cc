// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/failure_history.h"

#include <algorithm>
#include <cctype>

#include "supervisor/cli/failure_policy.h"

namespace muster {

namespace {

constexpr size_t kMaxCauseText = 512;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Line numbers, addresses, sizes and times differ from one failure to the next: each word with a
// digit in it becomes "#".
std::string without_numbers(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size() && out.size() < kMaxCauseText;) {
    size_t end = i;
    bool digit = false;
    for (; end < text.size() && is_word(text[end]); ++end)
      digit |= std::isdigit(static_cast<unsigned char>(text[end])) != 0;
    if (end == i) {
      out += text[i++];
      continue;
    }
    out += digit ? "#" : text.substr(i, end - i);
    i = end;
  }
  return out;
}

}  // namespace

std::string cause_of(const event::FailureFound& failure) {
  std::string cause = failure.kind + " " + std::to_string(failure.exit_code);
  if (failure.signal != 0) cause += " of rank " + std::to_string(failure.rank);
  return cause + " " + without_numbers(failure.message);
}

void FailureHistory::add(const event::FailureFound& failure, const Attempt& attempt,
                         std::chrono::milliseconds window) {
  const bool further = attempt.step > furthest_;
  const bool steady = attempt.ended - attempt.began >= kSteadyRun;
  furthest_ = std::max(furthest_, attempt.step);
  in_a_row_ = further || steady ? 1 : std::min(in_a_row_ + 1, kMaxSameFailures);
  if (further) failures_.clear();
  failures_.push_back({cause_of(failure), attempt.ended});
  const size_t most = kMaxSameFailures;
  while (failures_.size() > most || attempt.ended - failures_.front().at > window)
    failures_.pop_front();
}

int FailureHistory::same() const {
  if (failures_.empty()) return 0;
  return static_cast<int>(
      std::count_if(failures_.begin(), failures_.end(),
                    [&](const Failure& one) { return one.cause == failures_.back().cause; }));
}

}  // namespace muster
