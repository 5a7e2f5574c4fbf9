// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/store_place.h"

#include <arpa/inet.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "loop/unique_fd.h"
#include "supervisor/cli/rendezvous_options.h"

namespace muster {
namespace {

constexpr int kDefaultMasterPort = 29500;
constexpr size_t kMaxFolderName = 128;

bool is_address(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, host.c_str(), bytes.data()) == 1;
}

bool has_ipv6() {
  return UniqueFd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)).get() >= 0;
}

}  // namespace

std::string bind_address_for(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  std::string without_zone = host.substr(0, host.find('%'));
  if (is_address(AF_INET, host) || is_address(AF_INET6, without_zone)) return host;
  return has_ipv6() ? "::" : "0.0.0.0";
}

std::string random_uuid() {
  std::array<uint8_t, 16> bytes{};
  size_t got = 0;
  while (got < bytes.size()) {
    ssize_t n = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex.data();
  }
  return text;
}

std::string folder_name_for(const std::string& run_id) {
  std::string name = run_id.substr(0, kMaxFolderName);
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  return name;
}

StorePlace choose_store_place(const Options& options, const RendezvousPlan& rendezvous) {
  StorePlace place;
  const Meeting meeting = rendezvous.meeting;
  bool id_counts = meeting != Meeting::kStandalone && options.was_given("rdzv_id");
  bool fresh = meeting == Meeting::kStandalone || meeting == Meeting::kLocal;
  place.run_id = id_counts ? options.rdzv_id : fresh ? random_uuid() : options.rdzv_id;
  if (rendezvous.several_nodes()) {
    place.port = rendezvous.endpoint_port;
    return place;
  }
  if (meeting == Meeting::kStatic) {
    place.master_addr = options.master_addr;
    place.port = options.master_port.value_or(kDefaultMasterPort);
    // parse() has checked it.
    Result<Endpoint> endpoint = parse_endpoint(options.rdzv_endpoint);
    if (endpoint && !options.rdzv_endpoint.empty()) {
      place.master_addr = endpoint->host;
      place.port = endpoint->port.value_or(place.port);
    }
  } else {
    place.master_addr = options.local_addr.empty() ? "127.0.0.1" : options.local_addr;
  }
  place.bind = bind_address_for(place.master_addr);
  return place;
}

}  // namespace muster
