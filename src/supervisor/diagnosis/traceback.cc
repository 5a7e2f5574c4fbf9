// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/traceback.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "supervisor/diagnosis/text_lines.h"

// A block is what Python prints for one exception:
//
//   Traceback (most recent call last):             <- header; a syntax error of the script has none
//     File "train.py", line 41, in <module>        <- frames and their source lines, indented
//       step(batch)
//   ValueError: bad shape                          <- the exception, at the indent of the header
//
// Each line may carry a prefix: "  | " in exception groups, "[rank0]: " from PyTorch. The first
// frame tells the prefix. Blocks joined by Python's two connecting sentences are one chain.

namespace muster {

namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr size_t kMaxForeignLines = 5;  // of other writers, in the middle of a block
constexpr size_t kMaxMessageBytes = 1000;
constexpr size_t kMaxMessageLines = 6;  // below the exception line
constexpr size_t kMaxSyntaxErrorLines = 8;

struct Frame {
  std::string prefix;
  TracebackFrame where;
  bool in_function = false;  // false: the place of a syntax error
};

struct Block {
  std::string prefix;
  size_t begin = 0;  // header, or first frame
  size_t end = 0;    // behind the exception line
  size_t said = 0;   // the exception line, of a group that of its first leaf
  size_t chain_begin = 0;
  std::string type;
  std::string message;
  std::string cause;
  std::vector<TracebackFrame> frames;
  std::vector<TracebackFrame> first_frames;  // of the exception that the chain began with
  bool aside = false;
  bool ignored = false;
};

std::optional<Frame> parse_frame(std::string_view line) {
  constexpr std::string_view kFile = "  File \"";
  size_t at = line.find(kFile);
  if (at == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kLine = "\", line ";
  size_t file = at + kFile.size();
  size_t close = line.find(kLine, file);
  if (close == std::string_view::npos) return std::nullopt;
  Frame frame;
  frame.prefix = line.substr(0, at);
  frame.where.file = line.substr(file, close - file);
  std::string_view rest = line.substr(close + kLine.size());
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), frame.where.line);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  frame.in_function = rest.starts_with(", in ");
  // "line 3 in f" is how faulthandler writes its dumps, which are no exceptions.
  if (!frame.in_function && !rest.empty()) return std::nullopt;
  return frame;
}

// Splits "package.SomeError: text". A type is a dotted name, "<locals>" included.
bool parse_exception(std::string_view line, std::string& type, std::string& message) {
  auto part_of_name = [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) || std::string_view("_.<>").find(c) < 4;
  };
  size_t end = 0;
  while (end < line.size() && part_of_name(line[end]))
    ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(line[0]))) return false;
  std::string_view rest = line.substr(end);
  if (!rest.empty() && rest != ":" && !rest.starts_with(": ")) return false;
  type = line.substr(0, end);
  message = rest.size() > 2 ? std::string(rest.substr(2, kMaxMessageBytes)) : std::string();
  message = valid_utf8(message);
  return true;
}

bool has_exception_name(std::string_view type) {
  constexpr std::array<std::string_view, 7> kSuffixes = {
      "Error", "Exception", "Interrupt", "Exit", "Warning", "Group", "Iteration"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view suffix) { return type.ends_with(suffix); });
}

bool is_syntax_error(std::string_view type) {
  return type == "SyntaxError" || type == "IndentationError" || type == "TabError";
}

// Reads frames and the exception from `first`, which is a frame, in at most `max_lines`.
std::optional<Block> parse_block(const Lines& lines, size_t first, const std::string& prefix,
                                 size_t max_lines) {
  Block block;
  size_t foreign = 0;
  size_t end = first + std::min(max_lines, lines.size() - first);
  for (size_t i = first; i < end; ++i) {
    std::string_view rest = lines[i];
    bool ours = rest.starts_with(prefix);
    if (ours) rest.remove_prefix(prefix.size());
    if (ours && rest.starts_with("  ")) {
      std::optional<Frame> frame = parse_frame(lines[i]);
      if (frame && frame->prefix == prefix) block.frames.push_back(frame->where);
      continue;
    }
    bool named = ours && parse_exception(rest, block.type, block.message);
    if (named && (foreign == 0 || has_exception_name(block.type))) {
      block.said = i;
      block.end = i + 1;
      return block;
    }
    if (++foreign > kMaxForeignLines) return std::nullopt;
  }
  return std::nullopt;
}

// A message that only announces what follows ("Error(s) in loading state_dict for Net:") takes the
// next line along.
void complete_message(const Lines& lines, Block& block, std::string_view prefix) {
  if (!block.message.empty() && block.message.back() != ':') return;
  for (size_t i = block.end; i < lines.size() && i < block.end + 3; ++i) {
    std::string_view rest = lines[i];
    if (!rest.starts_with(prefix)) return;
    rest.remove_prefix(prefix.size());
    if (is_blank(rest)) continue;
    if (block.message.empty() && !rest.starts_with('\t')) return;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    block.message +=
        (block.message.empty() ? "" : " ") + valid_utf8(rest.substr(0, kMaxMessageBytes));
    return;
  }
}

// The body of an exception group hangs below it on lines that begin with '|' or '+'. Its first leaf
// says what really happened and joins the message.
void read_group(const Lines& lines, Block& block, std::string_view prefix) {
  size_t bar = prefix.find_last_of('|');
  size_t outer =
      bar == std::string_view::npos ? 0 : prefix.substr(0, bar).find_last_not_of(' ') + 1;
  bool leaf_found = false;
  for (; block.end < lines.size(); ++block.end) {
    std::string_view line = lines[block.end];
    if (line.substr(0, outer) != prefix.substr(0, outer)) return;
    line.remove_prefix(outer);
    size_t mark = line.find_first_not_of(' ');
    if (mark == std::string_view::npos || (line[mark] != '|' && line[mark] != '+')) return;
    if (line[mark] == '+' || leaf_found) continue;
    line.remove_prefix(mark + 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    std::string type, message;
    if (!parse_exception(line, type, message) || type.ends_with("ExceptionGroup")) continue;
    leaf_found = true;
    block.said = block.end;
    block.message += ": " + type + (message.empty() ? "" : ": " + message);
  }
}

// What stands before a traceback that did not end the process.
void read_announcement(const Lines& lines, Block& block) {
  const size_t from = block.begin > 3 ? block.begin - 3 : 0;
  for (size_t i = from; i < block.begin; ++i) {
    const std::string& line = lines[i];
    const bool next_to_it = i + 1 == block.begin;
    if (line.starts_with("Task exception was never retrieved")) block.ignored = true;
    if (!next_to_it) continue;
    if (line.starts_with("Exception ignored in")) block.ignored = true;
    if (line.starts_with("--- Logging error ---")) block.ignored = true;
    if (line.find("Exception in thread ") != std::string::npos) block.aside = true;
    if (line.starts_with("Process ") && line.ends_with(":")) block.aside = true;
  }
  block.aside = block.aside || block.ignored;
}

bool is_chained(const Lines& lines, size_t begin) {
  if (begin < 2) return false;
  const std::string& line = lines[begin - 2];
  return line.find("During handling of the above exception, another") != std::string::npos ||
         line.find("The above exception was the direct cause of") != std::string::npos;
}

// The block that begins at line i, if one does.
std::optional<Block> block_at(const Lines& lines, size_t i) {
  bool header = lines[i].ends_with(kHeader);
  size_t first = header ? i + 1 : i;
  if (first >= lines.size()) return std::nullopt;
  std::optional<Frame> frame = parse_frame(lines[first]);
  if (!frame) return std::nullopt;
  // Without a header it is a syntax error of the script, or the tail of the output begins inside.
  if (!header && frame->in_function && i > 1) return std::nullopt;
  // The syntax error has its place, the line and a mark below it, nothing more.
  size_t max_lines = header || frame->in_function ? lines.size() : kMaxSyntaxErrorLines;
  std::optional<Block> block = parse_block(lines, first, frame->prefix, max_lines);
  if (!block) return std::nullopt;
  if (!header && !frame->in_function && !is_syntax_error(block->type)) return std::nullopt;
  block->prefix = frame->prefix;
  block->begin = i;
  block->chain_begin = i;
  if (header && lines[i].ends_with("Exception Group Traceback (most recent call last):")) {
    read_group(lines, *block, frame->prefix);
  } else {
    complete_message(lines, *block, frame->prefix);
  }
  read_announcement(lines, *block);
  return block;
}

std::vector<Block> find_blocks(const Lines& lines) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < lines.size();) {
    std::optional<Block> block = block_at(lines, i);
    if (!block) {
      ++i;
      continue;
    }
    if (!blocks.empty() && is_chained(lines, block->begin)) {
      const Block& before = blocks.back();
      block->chain_begin = before.chain_begin;
      block->aside = before.aside;
      block->ignored = before.ignored;
      std::string text = before.message.empty() ? before.type : before.type + ": " + before.message;
      block->cause = before.cause.empty() ? text : before.cause;
      block->first_frames = before.cause.empty() ? before.frames : before.first_frames;
    }
    i = block->end;
    blocks.push_back(std::move(*block));
  }
  return blocks;
}

std::optional<TracebackFrame> choose_frame(const Block& block) {
  if (block.frames.empty()) return std::nullopt;
  if (is_syntax_error(block.type)) return block.frames.back();
  for (auto frame = block.frames.rbegin(); frame != block.frames.rend(); ++frame) {
    if (!is_library_file(frame->file)) return *frame;
  }
  return block.frames.back();
}

// A message may have several lines, and nothing marks its end: what follows counts as part of it,
// unless it is the beginning of something else that Python says.
size_t message_end(const Lines& lines, const Block& block) {
  size_t end = block.end;
  if (block.aside || block.prefix.find('|') != std::string::npos) return end;
  for (size_t i = end; i < lines.size() && i < block.end + kMaxMessageLines; ++i) {
    std::string_view line = lines[i];
    if (!line.starts_with(block.prefix) || line.ends_with(kHeader)) break;
    if (line.starts_with("Exception ignored in") || line.starts_with("Error in atexit")) break;
    if (!is_blank(line.substr(block.prefix.size()))) end = i + 1;
  }
  return end;
}

size_t count_text(const Lines& lines, size_t begin, size_t end) {
  size_t count = 0;
  for (size_t i = begin; i < end; ++i)
    count += is_blank(lines[i]) ? 0 : 1;
  return count;
}

}  // namespace

bool is_library_file(std::string_view file) {
  return file.starts_with("<frozen") || file.find("/site-packages/") != std::string_view::npos ||
         file.find("/dist-packages/") != std::string_view::npos ||
         file.find("/lib/python3") != std::string_view::npos;
}

std::string Traceback::summary() const {
  std::string text = message.empty() ? type : type + ": " + message;
  if (!where) return text;
  size_t slash = where->file.rfind('/');
  std::string name = slash == std::string::npos ? where->file : where->file.substr(slash + 1);
  return text + " (" + name + ":" + std::to_string(where->line) + ")";
}

std::optional<Traceback> find_traceback(const Lines& lines) {
  std::vector<Block> blocks = find_blocks(lines);
  if (blocks.empty()) return std::nullopt;
  auto fatal =
      std::find_if(blocks.rbegin(), blocks.rend(), [](const Block& b) { return !b.aside; });
  Block& block = fatal == blocks.rend() ? blocks.back() : *fatal;
  Traceback result;
  // A pool of processes raises a worker's exception again, as the cause of itself: the first place
  // is where it happened.
  const std::string text = block.message.empty() ? block.type : block.type + ": " + block.message;
  if (block.cause == text) {
    block.frames = std::move(block.first_frames);
    block.cause.clear();
  }
  result.where = choose_frame(block);
  result.type = std::move(block.type);
  result.message = std::move(block.message);
  result.cause = std::move(block.cause);
  result.lines.assign(lines.begin() + static_cast<std::ptrdiff_t>(block.chain_begin),
                      lines.begin() + static_cast<std::ptrdiff_t>(message_end(lines, block)));
  result.lines_before = count_text(lines, 0, block.chain_begin);
  result.lines_after = count_text(lines, block.end, lines.size());
  result.said = block.said - block.chain_begin;
  result.aside = block.aside;
  result.ignored = block.ignored;
  return result;
}

}  // namespace muster
