// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/text_pattern.h"

#include <algorithm>

namespace muster {

namespace {

constexpr size_t kMaxRanks = 200;  // characters of a list of ranks; a longer one is cut

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Length of what separates two numbers of a list.
size_t separator_length(std::string_view text) {
  for (std::string_view separator : {", ", ",", "-", " and ", " "})
    if (text.starts_with(separator)) return separator.size();
  return 0;
}

// Length of "3", "1, 2 and 5", "0-2" at the start of `text`; 0 if there is no number.
size_t ranks_length(std::string_view text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t number = i;
    while (i < text.size() && is_digit(text[i]))
      ++i;
    if (i == number) break;
    end = i;
    i += separator_length(text.substr(i));
    if (i == end) break;
  }
  return end;
}

// "1, 2 and 5" -> "1,2,5", cut to whole numbers.
std::string plain_list(std::string_view ranks) {
  std::string text;
  for (char c : ranks) {
    if (is_digit(c) || c == '-') {
      text += c;
    } else if (!text.empty() && text.back() != ',') {
      text += ',';
    }
  }
  if (text.size() > kMaxRanks) {
    text.resize(kMaxRanks);
    text.resize(std::min(text.rfind(','), text.size()));
  }
  return text;
}

// A piece between two stars that may contain '#'. Returns where it ends in `line` if it begins at
// `at`.
std::optional<size_t> piece_at(std::string_view piece, std::string_view line, size_t at,
                               std::string& ranks) {
  std::string found;
  for (char c : piece) {
    if (c == '#') {
      const size_t length = ranks_length(line.substr(at));
      if (length == 0) return std::nullopt;
      found = plain_list(line.substr(at, length));
      at += length;
    } else if (at < line.size() && line[at] == c) {
      ++at;
    } else {
      return std::nullopt;
    }
  }
  if (!found.empty()) ranks = std::move(found);
  return at;
}

// Where the first occurrence of `piece` from `from` on ends.
std::optional<size_t> find_piece(std::string_view piece, std::string_view line, size_t from,
                                 std::string& ranks) {
  const std::string_view plain = piece.substr(0, piece.find('#'));
  for (size_t at = from; at <= line.size(); ++at) {
    if (!plain.empty()) at = line.find(plain, at);
    if (at == std::string_view::npos) return std::nullopt;
    if (plain.size() == piece.size()) return at + plain.size();
    if (auto end = piece_at(piece, line, at, ranks)) return end;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TextMatch> match_text(std::string_view pattern, std::string_view line) {
  TextMatch match;
  bool anchored = pattern.starts_with('^');
  if (anchored) pattern.remove_prefix(1);
  size_t at = 0;
  while (!pattern.empty()) {
    const size_t star = std::min(pattern.find('*'), pattern.size());
    const std::string_view piece = pattern.substr(0, star);
    const std::optional<size_t> end = anchored ? piece_at(piece, line, at, match.ranks)
                                               : find_piece(piece, line, at, match.ranks);
    if (!end) return std::nullopt;
    at = *end;
    anchored = false;
    pattern.remove_prefix(std::min(star + 1, pattern.size()));
  }
  return match;
}

}  // namespace muster
