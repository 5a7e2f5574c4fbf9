// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Appends JSON to a string as it is told, without a tree in between: rows are written thousands at
// a time and composed into larger answers. Bytes that are not UTF-8 become U+FFFD and numbers that
// JSON does not have become null, so what comes out is always JSON.
class JsonOut {
 public:
  enum class Layout {
    kDense,  // for programs
    kLines,  // for people: indented, and rows (below) on one line each
  };
  explicit JsonOut(std::string& to, Layout layout = Layout::kDense) : to_(to), layout_(layout) {}

  void begin_object() { open('{', false); }
  void begin_array() { open('[', false); }
  // All of it on one line, whatever the layout.
  void begin_row() { open('{', true); }
  void begin_list() { open('[', true); }
  void end_object() { close('}'); }
  void end_array() { close(']'); }

  // `name` is ours: it needs no escaping.
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool yes) { put(yes ? "true" : "false"); }
  void value(double number);
  template <std::integral T>
  void value(T number) {
    integer(static_cast<int64_t>(number));
  }
  template <typename T>
  void value(const std::optional<T>& maybe) {
    maybe ? value(*maybe) : null();
  }
  void null() { put("null"); }
  // Bytes of the whole text so far, for those who have a limit.
  size_t size() const { return to_.size(); }

  // JSON that is there already.
  void raw(std::string_view json) { put(json); }

  template <typename T>
  void field(std::string_view name, const T& what) {
    key(name);
    value(what);
  }

 private:
  static constexpr size_t kMaxDepth = 24;
  struct Level {
    bool filled = false;  // it has something in it
    bool row = false;     // it is on one line
  };

  void open(char bracket, bool row);
  void close(char bracket);
  void before();  // the separator and the line's beginning
  void new_line();
  void put(std::string_view json);
  void integer(int64_t number);

  std::string& to_;
  Layout layout_;
  Level levels_[kMaxDepth]{};
  size_t depth_ = 0;
  bool after_key_ = false;
};

}  // namespace muster
