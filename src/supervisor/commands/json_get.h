// SPDX-License-Identifier: Apache-2.0
// Only for sources that read answers. Those are of another process, maybe of another version:
// nothing in them is taken for granted.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace muster {

// The value under `key` if it has the type of `otherwise`.
template <typename T>
T json_get(const nlohmann::json& json, const char* key, T otherwise) {
  if (!json.is_object()) return otherwise;
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<bool>() : otherwise;
  } else if constexpr (std::is_integral_v<T>) {
    return found->is_number_integer() ? found->get<T>() : otherwise;
  } else {
    return found->is_number() ? found->get<T>() : otherwise;
  }
}

inline std::string json_text(const nlohmann::json& json, const char* key) {
  return json_get(json, key, std::string());
}

// A duration in seconds as microseconds, -1 if it is none.
inline int64_t json_microseconds(const nlohmann::json& json, const char* key) {
  constexpr double kMost = 1e10;
  const double seconds = json_get(json, key, -1.0);
  return seconds >= 0 && seconds < kMost ? static_cast<int64_t>(seconds * 1e6) : -1;
}

// The object or array under `key`, an empty one if there is none.
inline const nlohmann::json& json_part(const nlohmann::json& json, const char* key) {
  static const nlohmann::json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(key);
  return found == json.end() || !found->is_structured() ? kNothing : *found;
}

}  // namespace muster
