// SPDX-License-Identifier: Apache-2.0
// Only for sources that turn described values (event_fields.h) into JSON or back. `Json` is a
// basic_json of the caller's choice.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace muster {

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Writes each field under its key; an empty optional has no key.
template <typename Json>
struct JsonWriter {
  Json& json;

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (kIsOptional<T>) {
      if (value) write(json[key], *value);
    } else {
      write(json[key], value);
    }
  }
  // For other readers than ours.
  void derived(const char* key, int value) { json[key] = value; }

  template <typename T>
  static void write(Json& to, T& value) {
    if constexpr (std::is_enum_v<T>) {
      to = name_of(value);
    } else if constexpr (kIsVector<T>) {
      to = Json::array();
      for (auto& item : value)
        write(to.emplace_back(), item);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      to = value;
    } else {
      to = Json::object();
      describe(JsonWriter{to}, value);
    }
  }
};

// Reads each field that is there. Unknown keys are ignored, missing ones leave their field alone.
template <typename Json>
struct JsonReader {
  const Json& json;
  const char* wrong = nullptr;  // the first key whose value has the wrong type

  template <typename T>
  void operator()(const char* key, T& value) {
    auto found = json.find(key);
    if (found != json.end() && !read(*found, value) && !wrong) wrong = key;
  }
  void derived(const char*, int) {}

  static bool read(const Json& from, bool& value) {
    if (!from.is_boolean()) return false;
    value = from.template get<bool>();
    return true;
  }
  static bool read(const Json& from, int64_t& value) {
    if (!from.is_number_integer()) return false;
    if (from.is_number_unsigned() &&
        from.template get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return false;
    value = from.template get<int64_t>();
    return true;
  }
  static bool read(const Json& from, int& value) {
    int64_t wide = 0;
    if (!read(from, wide) || wide != static_cast<int>(wide)) return false;
    value = static_cast<int>(wide);
    return true;
  }
  static bool read(const Json& from, std::string& value) {
    if (!from.is_string()) return false;
    value = from.template get<std::string>();
    return true;
  }
  template <typename T>
  static bool read(const Json& from, std::optional<T>& value) {
    return read(from, value.emplace());
  }
  template <typename T>
  static bool read(const Json& from, std::vector<T>& value) {
    if (!from.is_array()) return false;
    value.clear();
    for (const Json& item : from) {
      if (!read(item, value.emplace_back())) return false;
    }
    return true;
  }
  template <typename E>
  requires std::is_enum_v<E>
  static bool read(const Json& from, E& value) {
    if (!from.is_string()) return false;
    for (const auto& name : names_of(value)) {
      if (name.text == from.template get_ref<const std::string&>()) return value = name.value, true;
    }
    return false;
  }
  // A value that is described itself.
  template <typename T>
  requires std::is_class_v<T>
  static bool read(const Json& from, T& value) {
    if (!from.is_object()) return false;
    JsonReader reader{from};
    describe(reader, value);
    return !reader.wrong;
  }
};

}  // namespace muster
