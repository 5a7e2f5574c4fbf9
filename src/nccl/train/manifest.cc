// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nccl/train/files.h"

namespace muster::train::detail {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "muster-sharded-checkpoint";
constexpr int kVersion = 1;
constexpr std::string_view kShardPrefix = "shard-";

bool has_string(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string();
}

bool has_number(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_number_unsigned();
}

bool is_shard(const Json& value) {
  if (!value.is_object() || !has_string(value, "file") || !has_number(value, "bytes") ||
      !has_string(value, "header_crc32")) {
    return false;
  }
  // A name, not a way out of the folder.
  return generation_of(value["file"].get<std::string>()).has_value();
}

bool is_metadata(const Json& value) {
  return value.is_object() &&
         std::all_of(value.begin(), value.end(), [](const Json& text) { return text.is_string(); });
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json shards = Json::array();
  for (const Shard& shard : manifest.shards) {
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"header_crc32", shard.header_crc32}});
  }
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"generation", static_cast<uint64_t>(manifest.generation)},
                     {"metadata", manifest.metadata},
                     {"shards", std::move(shards)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

comm::Result<Manifest> parse_manifest(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !has_string(json, "format") || json["format"] != kFormat) {
    return bad_file(path, "not the manifest of a sharded checkpoint");
  }
  if (!has_number(json, "version") || json["version"] != kVersion) {
    return bad_file(path, "written in another version of the format");
  }
  const auto shards = json.find("shards");
  const auto metadata = json.find("metadata");
  if (!has_number(json, "generation") || shards == json.end() || !shards->is_array() ||
      shards->empty() || !std::all_of(shards->begin(), shards->end(), is_shard) ||
      metadata == json.end() || !is_metadata(*metadata)) {
    return bad_file(path, "the manifest is damaged");
  }
  Manifest manifest;
  manifest.generation = json["generation"].get<int64_t>();
  for (const Json& shard : *shards) {
    manifest.shards.push_back({shard["file"].get<std::string>(), shard["bytes"].get<uint64_t>(),
                               shard["header_crc32"].get<std::string>()});
  }
  manifest.metadata = metadata->get<Metadata>();
  return manifest;
}

std::string shard_name(int64_t generation, int rank) {
  return std::string(kShardPrefix) + std::to_string(generation) + "-" + std::to_string(rank) +
         ".safetensors";
}

std::optional<int64_t> generation_of(const std::string& name) {
  if (!name.starts_with(kShardPrefix)) return {};
  const char* end = name.data() + name.size();
  int64_t generation = 0;
  int rank = 0;
  auto parsed = std::from_chars(name.data() + kShardPrefix.size(), end, generation);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return {};
  parsed = std::from_chars(parsed.ptr + 1, end, rank);
  const std::string_view rest(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  if (parsed.ec != std::errc()) return {};
  if (rest != ".safetensors" && rest != ".safetensors.partial") return {};
  return generation;
}

}  // namespace muster::train::detail
