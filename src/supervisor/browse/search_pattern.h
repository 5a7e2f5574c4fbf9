// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace re2 {
class RE2;
}

namespace muster {

// What is looked for in logs: a text, or a regular expression of RE2, which takes time linear in
// the text whatever somebody thinks up. No match goes over the end of a line. Pure; may be used by
// several threads.
class SearchPattern {
 public:
  static constexpr size_t kMaxLength = 1'000;
  static constexpr size_t kMaxMatches = 64;  // of one line

  struct Settings {
    std::string text;
    bool is_regex = false;
    bool case_sensitive = false;
  };
  // The error says what is wrong with the expression.
  static Result<std::shared_ptr<const SearchPattern>> compile(const Settings& settings);
  ~SearchPattern();

  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };
  // The first match at or after `from`, which is a line's start. `bytes` are whole lines.
  std::optional<Span> find(std::string_view bytes, size_t from) const;

  // All matches that are not empty, of one line without its end.
  std::vector<Span> matches(std::string_view line) const;

 private:
  SearchPattern(std::unique_ptr<re2::RE2> expression, bool line_by_line);
  std::optional<Span> match(std::string_view text, size_t from) const;

  std::unique_ptr<re2::RE2> expression_;
  bool line_by_line_;  // it speaks of the text's begin or end, which are a line's
};

}  // namespace muster
