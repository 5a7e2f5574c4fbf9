// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::comm {

// What kind of thing went wrong, for programs; Error::message is for people.
enum class ErrorCode {
  kInvalidArgument,  // the call itself is wrong: a rank that is not there, a size that cannot be
  kTimeout,          // not done by its deadline; the message names who has not arrived, if known
  kPeerLost,         // another rank's connection broke: it died, or closed its communicator
  kAborted,          // this communicator was aborted, revoked or closed here
  kMismatch,         // the ranks do not agree: on the call, the world's size, a version, a device
  kStoreLost,        // the store cannot be reached any more
  kUnavailable,      // not here: no driver, a library not found, too old, or not built in
  kNccl,             // NCCL failed in another way; see nccl_result
  kCuda,             // CUDA failed in another way; see cuda_error
  kSystem,           // the operating system said no
};

// "timeout", "peer_lost", ...: stable, as they stand in error files and logs.
const char* to_string(ErrorCode code);

// Why an expected failure happened. The message reads from far to near and says what to do if the
// reader can do something.
struct Error {
  ErrorCode code = ErrorCode::kSystem;
  std::string message;
  std::vector<int> ranks{};  // of the world: whom it is about, where that is known
  int nccl_result = 0;       // ncclResult_t
  int cuda_error = 0;        // cudaError_t
};

// Thrown by Result::value() where there is no value, and by nothing else in this library.
class ErrorException : public std::runtime_error {
 public:
  explicit ErrorException(Error error)
      : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// A value or an Error, with std::expected's interface: ask `if (result)`, or call value(), which
// throws ErrorException where there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  // Whether it went well.
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Throws ErrorException where there is no value; so do * and ->.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T value() && { return check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only where there is no value.
  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

 private:
  void check() const {
    if (!has_value()) throw ErrorException(error());
  }
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  // Whether it went well.
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  // Throws ErrorException after an error.
  void value() const {
    if (!has_value()) throw ErrorException(error());
  }
  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace muster::comm
