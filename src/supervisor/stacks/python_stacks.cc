// SPDX-License-Identifier: Apache-2.0
//
// CPython keeps a list of interpreters, each a list of threads, each a chain of frames, each with
// its code object, which has the names and a table of lines. Where the links stand in those
// structs is the same for all releases of a minor version, and is told here for each; from 3.13 on
// the runtime begins with a table that tells some of it, which is taken for what may move.
#include "supervisor/stacks/python_stacks.h"

#include <algorithm>
#include <optional>

namespace muster {

namespace {

struct Layout {
  unsigned version;  // 0x30b for 3.11
  uint64_t interpreters_head;
  uint64_t interpreter_next;
  uint64_t threads_head;
  uint64_t thread_next;
  uint64_t native_thread_id;
  uint64_t thread_frame;   // of the frame, or of what has it
  int64_t indirect_frame;  // where that has it, -1 if the thread itself has
  uint64_t frame_previous;
  uint64_t frame_code;
  uint64_t frame_instruction;
  uint64_t frame_owner;
  uint64_t code_first_line;
  uint64_t code_instructions;
  uint64_t ascii_size;
};

constexpr Layout kLayouts[] = {
    {0x30b, 40, 0, 16, 8, 160, 56, 8, 48, 32, 56, 69, 72, 184, 48},
    {0x30c, 40, 0, 72, 8, 144, 56, 0, 8, 0, 56, 70, 68, 192, 40},
    {0x30d, 632, 7264, 7344, 8, 160, 72, -1, 8, 0, 56, 70, 68, 200, 40},
    {0x30e, 808, 7272, 7344, 8, 160, 72, -1, 8, 0, 56, 74, 68, 208, 40},
};

// The same in all of them.
constexpr uint64_t kCodeFile = 112;
constexpr uint64_t kCodeName = 128;  // the qualified one
constexpr uint64_t kCodeLines = 136;
constexpr uint64_t kObjectLength = 16;
constexpr uint64_t kTextState = 32;
constexpr uint64_t kBytes = 32;
constexpr uint8_t kOwnedByInterpreter = 3;  // a frame that only marks where C called
constexpr uint64_t kTagBits = 3;            // that references have from 3.14 on
constexpr uint64_t kMaxLineTable = 64 * 1024;

// The table at the start of the runtime.
constexpr unsigned kFirstWithTable = 0x30d;
constexpr uint64_t kTableInterpreters = 40;
constexpr uint64_t kTableNextInterpreter = 64;
constexpr uint64_t kTableThreads = 72;

class Reader {
 public:
  Reader(const Layout& layout, const ReadMemory& read) : layout_(layout), read_(read) {}

  std::map<int, std::vector<PythonFrame>> stacks(uint64_t runtime) {
    if (layout_.version >= kFirstWithTable) {
      layout_.interpreters_head = word(runtime + kTableInterpreters);
      layout_.interpreter_next = word(runtime + kTableNextInterpreter);
      layout_.threads_head = word(runtime + kTableThreads);
    }
    std::map<int, std::vector<PythonFrame>> found;
    size_t left = kMaxPythonThreads;
    for (uint64_t interpreter = word(runtime + layout_.interpreters_head);
         interpreter != 0 && left > 0; interpreter = word(interpreter + layout_.interpreter_next)) {
      for (uint64_t thread = word(interpreter + layout_.threads_head); thread != 0 && left > 0;
           thread = word(thread + layout_.thread_next), --left) {
        const auto id = static_cast<int>(word(thread + layout_.native_thread_id));
        found.emplace(id, frames(thread));
      }
      if (left > 0) --left;
    }
    return found;
  }

 private:
  // 0 where nothing can be read: every chain ends there.
  template <typename T = uint64_t>
  T word(uint64_t address) const {
    T value{};
    return address != 0 && read_(address, &value, sizeof value) ? value : T{};
  }

  std::vector<PythonFrame> frames(uint64_t thread) {
    std::vector<PythonFrame> found;
    uint64_t frame = word(thread + layout_.thread_frame);
    if (layout_.indirect_frame >= 0 && frame != 0) {
      frame = word(frame + static_cast<uint64_t>(layout_.indirect_frame));
    }
    for (size_t i = 0; frame != 0 && i < kMaxPythonFrames; ++i) {
      const bool marks = layout_.version >= 0x30c &&
                         word<uint8_t>(frame + layout_.frame_owner) == kOwnedByInterpreter;
      const uint64_t code = word(frame + layout_.frame_code) & ~kTagBits;
      if (!marks && code != 0) {
        found.push_back(frame_of(code, word(frame + layout_.frame_instruction)));
      }
      frame = word(frame + layout_.frame_previous);
    }
    return found;
  }

  PythonFrame frame_of(uint64_t code, uint64_t instruction) {
    PythonFrame frame;
    frame.function = text(word(code + kCodeName));
    frame.file = text(word(code + kCodeFile));
    const int first = word<int>(code + layout_.code_first_line);
    const uint64_t begin = code + layout_.code_instructions;
    const uint64_t table = word(code + kCodeLines);
    const uint64_t size = word(table + kObjectLength);
    frame.line = first;
    if (instruction < begin || table == 0 || size > kMaxLineTable) return frame;
    std::string bytes(size, '\0');
    if (!read_(table + kBytes, bytes.data(), size)) return frame;
    frame.line = python_line(bytes, first, instruction - begin);
    return frame;
  }

  // A str. One with other characters than ASCII is kept in its own way, and is rare for names.
  std::string text(uint64_t object) {
    const uint64_t size = std::min<uint64_t>(word(object + kObjectLength), kMaxPythonName);
    const auto state = word<uint32_t>(object + kTextState);
    // Two bits of how it is interned, three of its kind, then whether it is compact, and ASCII.
    constexpr unsigned kCompact = 5;
    const bool compact_ascii = (state >> kCompact & 3) == 3;
    if (object == 0 || size == 0 || !compact_ascii) return "?";
    std::string text(size, '\0');
    return read_(object + layout_.ascii_size, text.data(), size) ? text : "?";
  }

  Layout layout_;
  const ReadMemory& read_;
};

// Takes variable-length numbers off the front.
class Table {
 public:
  explicit Table(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  unsigned byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 60; shift += 6) {
      const unsigned next = byte();
      value |= static_cast<uint64_t>(next & 63) << shift;
      if ((next & 64) == 0) break;
    }
    return value;
  }
  int64_t signed_number() {
    const uint64_t value = number();
    const auto size = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -size : size;
  }

 private:
  std::string_view bytes_;
};

}  // namespace

int python_line(std::string_view table, int first_line, uint64_t offset) {
  constexpr unsigned kNone = 15;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kOneLine = 10;
  Table rest(table);
  int64_t line = first_line;
  uint64_t end = 0;
  while (!rest.empty()) {
    const unsigned head = rest.byte();
    const unsigned code = head >> 3 & 15;
    end += ((head & 7) + 1) * uint64_t{2};
    if (code == kLong) {
      line += rest.signed_number();
      for (int i = 0; i < 3; ++i)  // end of line, columns
        rest.number();
    } else if (code == kNoColumns) {
      line += rest.signed_number();
    } else if (code >= kOneLine && code < kNoColumns) {
      line += code - kOneLine;
      rest.byte();
      rest.byte();
    } else if (code < kOneLine) {
      rest.byte();
    }
    if (offset < end) return code == kNone ? first_line : static_cast<int>(line);
  }
  return first_line;
}

std::map<int, std::vector<PythonFrame>> read_python_stacks(const PythonPlace& place,
                                                           const ReadMemory& read,
                                                           std::string& trouble) {
  uint64_t version = 0;
  if (!read(place.version, &version, sizeof version)) {
    trouble = "its Python cannot be read";
    return {};
  }
  const unsigned minor = static_cast<unsigned>(version >> 16);
  for (const Layout& layout : kLayouts)
    if (layout.version == minor) return Reader(layout, read).stacks(place.runtime);
  trouble = "the stacks of Python " + std::to_string(minor >> 8) + "." +
            std::to_string(minor & 255) + " are not known here";
  return {};
}

}  // namespace muster
