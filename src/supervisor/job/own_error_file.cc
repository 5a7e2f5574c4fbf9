// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/own_error_file.h"

#include <nlohmann/json.hpp>

#include "supervisor/diagnosis/error_file.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> pass_on(const event::FailureFound& root, const std::string& text) {
  ErrorFile::Form form = parse_error_file(text).form;
  if (form == ErrorFile::Form::kUnreadable) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  // As torchrun has it: a signal is a negative code.
  if (form == ErrorFile::Form::kFull) {
    json["message"]["errorCode"] = root.signal != 0 ? -root.signal : root.exit_code;
  }
  return dump(json);
}

}  // namespace

std::string own_error_message(std::string message, std::chrono::system_clock::time_point now) {
  int64_t seconds =
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch() / std::chrono::seconds(1);
  Json json;
  json["message"]["message"] = std::move(message);
  // No stack of muster's own: it would say nothing about the failure.
  json["message"]["extraInfo"] = {{"py_callstack", ""}, {"timestamp", std::to_string(seconds)}};
  return dump(json);
}

std::optional<std::string> own_error_file(const JobState& state, const std::string& root_error_file,
                                          std::chrono::system_clock::time_point now) {
  if (!state.end || state.end->outcome == Outcome::kSucceeded) return std::nullopt;
  if (state.end->outcome == Outcome::kStopped && state.stop_signal) {
    return own_error_message("SignalException: Process " + std::to_string(state.job.pid) +
                                 " got signal: " + std::to_string(state.stop_signal->signal) +
                                 " (" + describe_signal(*state.stop_signal) + ")",
                             now);
  }
  const AttemptState* attempt = state.current();
  if (attempt && attempt->root_cause) {
    const event::FailureFound& root = *attempt->root_cause;
    if (root.pid != 0) return pass_on(root, root_error_file);
    return own_error_message(root.kind + ": " + root.message, now);
  }
  std::string trouble = state.troubles.empty() ? "" : ": " + state.troubles.back().message;
  return own_error_message(
      "the job ended with exit code " + std::to_string(state.end->exit_code) + trouble, now);
}

}  // namespace muster
