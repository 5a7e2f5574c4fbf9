// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/office_holder.h"

#include <nlohmann/json.hpp>

#include "loop/socket_address.h"

namespace muster {

namespace {

using Json = nlohmann::json;

constexpr const char* kKind = "muster coordinator";

bool read(const Json& object, const char* key, std::string& to) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  to = found->get<std::string>();
  return true;
}

bool read(const Json& object, const char* key, int& to) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() || found->get<uint64_t>() > INT32_MAX)
    return false;
  to = found->get<int>();
  return true;
}

}  // namespace

std::string holder_text(const OfficeHolder& holder) {
  const Json text = {
      {"kind", kKind},       {"run_id", holder.run_id},       {"agent", holder.agent_id},
      {"host", holder.host}, {"addresses", holder.addresses}, {"port", holder.port},
      {"term", holder.term}};
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<OfficeHolder> parse_holder(std::string_view text) {
  if (text.size() > kMaxHolderText) return std::nullopt;
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  OfficeHolder holder;
  std::string kind;
  if (!read(object, "kind", kind) || kind != kKind || !read(object, "run_id", holder.run_id) ||
      !read(object, "agent", holder.agent_id) || !read(object, "host", holder.host) ||
      !read(object, "port", holder.port) || !read(object, "term", holder.term))
    return std::nullopt;
  if (holder.port < 1 || holder.port > 65535) return std::nullopt;
  auto addresses = object.find("addresses");
  if (addresses == object.end() || !addresses->is_array() || addresses->empty() ||
      addresses->size() > kMaxHolderAddresses)
    return std::nullopt;
  for (const Json& address : *addresses) {
    if (!address.is_string() || !SocketAddress::parse(address.get<std::string>(), holder.port))
      return std::nullopt;
    holder.addresses.push_back(address.get<std::string>());
  }
  return holder;
}

}  // namespace muster
