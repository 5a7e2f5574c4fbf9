// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "loop/check.h"

namespace muster {

// Why an expected failure happened. `code` is an errno value (positive) or 0 where none applies;
// `message` reads from far to near ("store: bind 127.0.0.1:29500: address already in use") and says
// what to do if the reader can do something.
struct Error {
  int code = 0;
  std::string message;
};

// An Error with "<context>: <strerror>" as its message.
inline Error errno_error(int code, std::string_view context) {
  return Error{code, std::string(context) + ": " + std::strerror(code)};
}

// A value or an Error, with std::expected's interface so that it can retire when C++23 is here.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return MUST(has_value()), std::get<0>(state_); }
  const T& value() const& { return MUST(has_value()), std::get<0>(state_); }
  T&& value() && { return MUST(has_value()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return MUST(!has_value()), std::get<1>(state_); }
  Error&& error() && { return MUST(!has_value()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return MUST(error_.has_value()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace muster
