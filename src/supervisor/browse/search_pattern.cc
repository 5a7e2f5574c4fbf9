// SPDX-License-Identifier: Apache-2.0
//
// Many lines are searched at once, because starting the expression anew for each costs more than
// running it over a usual line.
#include "supervisor/browse/search_pattern.h"

#include <re2/re2.h>

#include <algorithm>

namespace muster {

namespace {

// Of the compiled expression and the states it meets.
constexpr int64_t kMaxMemory = int64_t{2} << 20;

// '^' and '$' are those of lines.
constexpr std::string_view kFlags = "(?m)";

std::string trouble(const std::string& error, std::string_view text) {
  std::string message = error;
  if (const size_t at = message.find(kFlags); at != std::string::npos)
    message.erase(at, kFlags.size());
  return "the regular expression '" + std::string(text) + "' is not one: " + message;
}

}  // namespace

SearchPattern::SearchPattern(std::unique_ptr<re2::RE2> expression, bool line_by_line)
    : expression_(std::move(expression)), line_by_line_(line_by_line) {}

SearchPattern::~SearchPattern() = default;

Result<std::shared_ptr<const SearchPattern>> SearchPattern::compile(const Settings& settings) {
  if (settings.text.empty()) return Error{0, "nothing to search for"};
  if (settings.text.size() > kMaxLength)
    return Error{0, "more than " + std::to_string(kMaxLength) + " bytes to search for"};
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  options.set_never_nl(true);
  options.set_case_sensitive(settings.case_sensitive);
  options.set_literal(!settings.is_regex);
  auto expression = std::make_unique<re2::RE2>(
      settings.is_regex ? std::string(kFlags) + settings.text : settings.text, options);
  if (!expression->ok()) return Error{0, trouble(expression->error(), settings.text)};
  const bool line_by_line = settings.is_regex && (settings.text.find("\\A") != std::string::npos ||
                                                  settings.text.find("\\z") != std::string::npos);
  return std::shared_ptr<const SearchPattern>(
      new SearchPattern(std::move(expression), line_by_line));
}

std::optional<SearchPattern::Span> SearchPattern::match(std::string_view text, size_t from) const {
  re2::StringPiece found;
  if (!expression_->Match({text.data(), text.size()}, from, text.size(), re2::RE2::UNANCHORED,
                          &found, 1))
    return std::nullopt;
  const auto begin = static_cast<size_t>(found.data() - text.data());
  return Span{begin, begin + found.size()};
}

std::optional<SearchPattern::Span> SearchPattern::find(std::string_view bytes, size_t from) const {
  if (!line_by_line_) {
    const std::optional<Span> span = match(bytes, from);
    // Behind the last line's end there is no line.
    if (span && span->begin == bytes.size() && bytes.ends_with('\n')) return std::nullopt;
    return span;
  }
  while (from < bytes.size()) {
    const size_t end = std::min(bytes.find('\n', from), bytes.size());
    if (const std::optional<Span> span = match(bytes.substr(from, end - from), 0))
      return Span{from + span->begin, from + span->end};
    from = end + 1;
  }
  return std::nullopt;
}

std::vector<SearchPattern::Span> SearchPattern::matches(std::string_view line) const {
  std::vector<Span> spans;
  for (size_t from = 0; from <= line.size() && spans.size() < kMaxMatches;) {
    const std::optional<Span> span = match(line, from);
    if (!span) break;
    if (span->end > span->begin) spans.push_back(*span);
    from = std::max(span->end, span->begin + 1);
  }
  return spans;
}

}  // namespace muster
