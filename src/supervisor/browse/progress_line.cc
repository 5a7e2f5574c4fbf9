// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/progress_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace muster {

namespace {

constexpr int64_t kMostSteps = 1'000'000'000'000'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c);
}

// The last state of the line, in lower case and without escape sequences.
std::string readable(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n'))
    line.remove_suffix(1);
  if (size_t redrawn = line.rfind('\r'); redrawn != std::string_view::npos) {
    line.remove_prefix(redrawn + 1);
  }
  if (line.size() > kMaxProgressLine) line.remove_prefix(line.size() - kMaxProgressLine);
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      for (i += 2; i < line.size() && !(line[i] >= '@' && line[i] <= '~');)
        ++i;
      continue;
    }
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

// Reads along a line.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool skip(std::string_view any) {
    size_t count = std::min(rest_.find_first_not_of(any), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<double> number() {
    double value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  // A count of steps: whole, or with the k, M or G of a bar that scales its units.
  std::optional<int64_t> count() {
    if (rest_.empty() || !is_digit(rest_.front())) return std::nullopt;
    Scanner ahead(rest_);
    std::optional<double> value = ahead.number();
    if (!value) return std::nullopt;
    bool whole = *value == std::floor(*value);
    for (auto [unit, factor] : {std::pair{"k", 1e3}, {"m", 1e6}, {"g", 1e9}}) {
      if (!ahead.take(unit)) continue;
      *value *= factor;
      whole = true;
      break;
    }
    bool ends = ahead.rest_.empty() || !is_word(ahead.rest_.front());
    if (!whole || !ends || !(*value <= static_cast<double>(kMostSteps))) return std::nullopt;
    rest_ = ahead.rest_;
    return std::llround(*value);
  }

 private:
  std::string_view rest_;
};

constexpr std::string_view kBetween = " \t:=#'\"[(";  // a name and its value

// "812", "812/1000", "10/   100", "3 of 10".
bool read_steps(Scanner& scanner, Progress& progress) {
  std::optional<int64_t> step = scanner.count();
  if (!step) return false;
  progress.step = *step;
  Scanner ahead = scanner;
  ahead.skip(" ");
  if (!ahead.take("/") && !ahead.take("of ")) return true;
  ahead.skip(" ");
  if (std::optional<int64_t> steps = ahead.count(); steps && *steps > 0) progress.steps = *steps;
  return true;
}

bool is_step_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames = {"step",        "steps",     "iter",
                                                      "iters",       "iteration", "iterations",
                                                      "global_step", "batch",     "update"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool of_validation(std::string_view name) {
  for (std::string_view word : {"val", "valid", "validation", "eval", "evaluation", "test"}) {
    if (name == word || (name.starts_with(word) && name[word.size()] == '_')) return true;
  }
  return false;
}

bool is_loss_name(std::string_view name) {
  return (name == "loss" || name.ends_with("_loss")) && !of_validation(name);
}

// "a/b" as a bar shows it: between "|" and "[", or in brackets.
void read_bar(std::string_view text, size_t slash, Progress& progress) {
  size_t begin = slash;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '.'))
    --begin;
  size_t opening = text.substr(0, begin).find_last_not_of(' ');
  char opened = opening == std::string_view::npos ? ' ' : text[opening];
  std::optional<int64_t> step = Scanner(text.substr(begin, slash - begin)).count();
  Scanner behind(text.substr(slash + 1));
  behind.skip(" ");
  std::optional<int64_t> steps = behind.count();
  if (!step || !steps || *steps == 0) return;
  bool in_brackets = opened == '[' && (behind.take("]") || behind.take(" ("));
  if (!in_brackets && !(opened == '|' && behind.take(" ["))) return;
  progress.step = *step;
  progress.steps = *steps;
}

// "3.1it/s" and "2.5s/it"; the number ends at `unit`.
void read_rate(std::string_view text, size_t slash, Progress& progress) {
  size_t word = slash;
  while (word > 0 && is_letter(text[word - 1]))
    --word;
  size_t after = slash + 1;
  while (after < text.size() && is_letter(text[after]))
    ++after;
  std::string_view above = text.substr(word, slash - word);
  std::string_view below = text.substr(slash + 1, after - slash - 1);
  auto steps = [](std::string_view name) {
    return name == "it" || name == "its" || name == "batches" || is_step_name(name);
  };
  auto seconds = [](std::string_view name) { return name == "s" || name == "sec"; };
  double factor = above == "ms" ? 1e-3 : 1;
  bool rate = steps(above) && seconds(below);
  if (!rate && !((seconds(above) || above == "ms") && steps(below))) return;
  while (word > 0 && text[word - 1] == ' ')
    --word;
  size_t begin = word;
  while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.'))
    --begin;
  std::optional<double> value = Scanner(text.substr(begin, word - begin)).number();
  if (!value || !std::isfinite(*value)) return;
  if (rate) progress.steps_per_s = *value;
  if (!rate && *value > 0) progress.steps_per_s = 1 / (*value * factor);
}

void read_named(std::string_view name, std::string_view name_before, std::string_view rest,
                Progress& progress) {
  Scanner scanner(rest);
  if (is_step_name(name) && progress.step < 0) {
    scanner.skip(kBetween);
    read_steps(scanner, progress);
  }
  if (!is_loss_name(name) || of_validation(name_before) || progress.loss) return;
  // "loss" must be followed by something that is not a letter: "loss function" has no value.
  scanner.skip(kBetween);
  if (std::optional<double> loss = scanner.number()) progress.loss = *loss;
}

}  // namespace

void Progress::update(const Progress& newer) {
  if (newer.step >= 0) step = newer.step;
  if (newer.steps >= 0) steps = newer.steps;
  if (newer.steps_per_s >= 0) steps_per_s = newer.steps_per_s;
  if (newer.loss) loss = newer.loss;
  if (steps >= 0 && step > steps) steps = -1;
}

Progress parse_progress(std::string_view line) {
  std::string text = readable(line);
  std::string_view view = text;
  Progress progress, bar;
  std::string_view name_before;
  for (size_t at = 0; at < view.size();) {
    if (view[at] == '/') {
      read_bar(view, at, bar);
      read_rate(view, at, progress);
    }
    if (!is_letter(view[at]) || (at > 0 && is_word(view[at - 1]))) {
      // Words belong together only if blanks alone are between them.
      if (view[at] != ' ' && !is_word(view[at])) name_before = {};
      ++at;
      continue;
    }
    size_t end = at;
    while (end < view.size() && is_word(view[end]))
      ++end;
    std::string_view name = view.substr(at, end - at);
    bool slashed = at > 0 && view[at - 1] == '/';
    if (!slashed) read_named(name, name_before, view.substr(end), progress);
    // "val/loss" is of validation, "train/loss" is not.
    if (slashed && name == "loss") {
      size_t word = at - 1;
      while (word > 0 && is_word(view[word - 1]))
        --word;
      read_named(name, view.substr(word, at - 1 - word), view.substr(end), progress);
    }
    name_before = name;
    at = end;
  }
  if (progress.step < 0 && bar.step >= 0) {
    progress.step = bar.step;
    progress.steps = bar.steps;
  }
  return progress;
}

}  // namespace muster
