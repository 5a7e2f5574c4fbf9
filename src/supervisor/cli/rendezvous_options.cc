// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/rendezvous_options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "supervisor/cli/suggest.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

using Conf = std::map<std::string, std::string>;

constexpr int kC10dPort = 29400;
constexpr int kEtcdPort = 2379;
// DNS allows 253; the rest is for a scope.
constexpr size_t kMaxHost = 300;

// A year of seconds.
constexpr int64_t kLargest = 366 * 24 * 3600;

// These are options of their own.
constexpr std::array<std::string_view, 6> kReserved = {"backend",   "endpoint",  "run_id",
                                                       "min_nodes", "max_nodes", "local_addr"};

constexpr std::array<std::string_view, 4> kTimeouts = {"join_timeout", "last_call_timeout",
                                                       "close_timeout", "heartbeat_timeout"};

constexpr std::array<std::string_view, 19> kKnown = {"timeout",
                                                     "rank",
                                                     "join_timeout",
                                                     "last_call_timeout",
                                                     "close_timeout",
                                                     "protocol",
                                                     "keep_alive_max_attempt",
                                                     "keep_alive_interval",
                                                     "heartbeat_timeout",
                                                     "is_host",
                                                     "read_timeout",
                                                     "store_type",
                                                     "ssl_cert",
                                                     "ca_cert",
                                                     "ssl_cert_key",
                                                     "etcd_prefix",
                                                     "cacert",
                                                     "cert",
                                                     "key"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_host_text(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ':' || c == '-' || c >= 0x80;
  });
}

bool is_ipv6(std::string_view text) {
  in6_addr bytes{};
  return inet_pton(AF_INET6, std::string(text).c_str(), &bytes) == 1;
}

// Digits and dots only, but no address: a slip, and nothing to look up.
bool is_broken_ipv4(std::string_view host) {
  in_addr bytes{};
  return host.find_first_not_of("0123456789.") == std::string_view::npos &&
         inet_aton(std::string(host).c_str(), &bytes) == 0;
}

std::optional<int> parse_port(std::string_view text) {
  bool digits =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (text.empty() || text.size() > 5 || !digits) return std::nullopt;
  std::optional<int64_t> port = parse_int(text);
  if (!port || *port > 65535) return std::nullopt;
  return static_cast<int>(*port);
}

Result<void> check_positive(const Conf& conf, std::string_view key) {
  auto found = conf.find(std::string(key));
  if (found == conf.end()) return {};
  std::optional<int64_t> value = parse_int(found->second);
  if (value && *value > kLargest) {
    return Error{
        0, found->first + "=" + found->second + ": must be at most " + std::to_string(kLargest)};
  }
  if (value && *value > 0) return {};
  return Error{0, found->first + "=" + found->second + ": expected a positive whole number"};
}

Result<void> check_dynamic(const Conf& conf) {
  for (std::string_view key : kTimeouts) {
    if (Result<void> fine = check_positive(conf, key); !fine) return fine;
  }
  for (std::string_view key : {"keep_alive_max_attempt", "read_timeout"}) {
    if (Result<void> fine = check_positive(conf, key); !fine) return fine;
  }
  auto interval = conf.find("keep_alive_interval");
  if (interval != conf.end()) {
    std::optional<std::chrono::milliseconds> value = parse_seconds(interval->second);
    if (!value || value->count() < 1) {
      return Error{
          0, "keep_alive_interval=" + interval->second + ": expected a positive number of seconds"};
    }
  }
  auto is_host = conf.find("is_host");
  if (is_host != conf.end() && !parse_bool(is_host->second)) {
    return Error{0, "is_host=" + is_host->second + ": expected true or false"};
  }
  auto store_type = conf.find("store_type");
  if (store_type == conf.end()) return {};
  const std::string type = lower(trim(store_type->second));
  if (type == "tcp" || type == "file") return {};
  return Error{0, "store_type=" + store_type->second + ": expected tcp or file"};
}

}  // namespace

bool uses_file_store(const Conf& conf) {
  auto found = conf.find("store_type");
  return found != conf.end() && lower(trim(found->second)) == "file";
}

std::optional<int> default_port(const std::string& backend) {
  if (backend == "c10d") return kC10dPort;
  if (backend.starts_with("etcd")) return kEtcdPort;
  return std::nullopt;
}

bool is_loopback_host(std::string_view host) {
  std::string name = lower(host);
  if (name.starts_with("[") && name.ends_with("]")) name = name.substr(1, name.size() - 2);
  in6_addr six{};
  if (inet_pton(AF_INET6, name.c_str(), &six) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
  }
  in_addr four{};
  if (inet_aton(name.c_str(), &four) != 0) return (ntohl(four.s_addr) >> 24) == 127;
  return name == "localhost" || name.ends_with(".localhost") || name.starts_with("localhost.") ||
         name == "localhost4" || name == "localhost6" || name == "ip6-localhost" ||
         name == "ip6-loopback";
}

Result<std::string> parse_host(std::string_view text) {
  std::string_view host = text;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const size_t zone = host.find('%');
  const bool scoped = zone != std::string_view::npos && is_ipv6(host.substr(0, zone)) &&
                      is_host_text(host.substr(zone + 1));
  if (!scoped && !is_host_text(host)) {
    return Error{0, "'" + std::string(host) + "' is no host name"};
  }
  if (is_broken_ipv4(host)) return Error{0, "'" + std::string(host) + "' is no IPv4 address"};
  if (host.size() > kMaxHost) return Error{0, "the host name is too long"};
  return std::string(host);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  text = trim(text);
  if (text.empty()) return Endpoint{"localhost", std::nullopt};
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.front() == '[') {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return Error{0, "the bracket is not closed"};
    host = text.substr(1, close - 1);
    std::string_view rest = text.substr(close + 1);
    has_port = !rest.empty();
    if (has_port && rest.front() != ':') return Error{0, "expected [address]:port"};
    if (has_port) port = rest.substr(1);
  } else if (size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
    if (host.find(':') != std::string_view::npos) {
      return Error{0, "an IPv6 address stands in brackets, as in [::1]:29500"};
    }
  }
  Result<std::string> name = parse_host(host);
  if (!name) return name.error();
  Endpoint endpoint{*name, std::nullopt};
  if (!has_port) return endpoint;
  endpoint.port = parse_port(port);
  if (!endpoint.port) {
    return Error{0, "the port '" + std::string(port) + "' is no number from 0 to 65535"};
  }
  return endpoint;
}

Result<Conf> parse_rdzv_conf(std::string_view text) {
  Conf conf;
  text = trim(text);
  if (text.empty()) return conf;
  for (const std::string& part : split(text, ',')) {
    size_t equals = part.find('=');
    std::string key(trim(std::string_view(part).substr(0, equals)));
    if (key.empty()) {
      return Error{0, "'" + part + "' has no key; expected KEY=VALUE,KEY=VALUE"};
    }
    std::string value;
    if (equals != std::string::npos) value = trim(std::string_view(part).substr(equals + 1));
    if (value.empty()) return Error{0, "the key '" + key + "' has no value; expected KEY=VALUE"};
    if (std::find(kReserved.begin(), kReserved.end(), key) != kReserved.end()) {
      return Error{0, "'" + key + "' is not for --rdzv-conf; it has an option of its own"};
    }
    conf[key] = value;
  }
  return conf;
}

Result<void> check_rdzv_conf(const Conf& conf, const std::string& backend) {
  if (Result<void> fine = check_positive(conf, "timeout"); !fine) return fine;
  if (backend == "static") return {};
  return check_dynamic(conf);
}

std::vector<std::string> unknown_conf_keys(const Conf& conf) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : conf) {
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) unknown.push_back(key);
  }
  return unknown;
}

std::string nearest_conf_key(const std::string& key) {
  return nearest(key, std::vector<std::string>(kKnown.begin(), kKnown.end()));
}

std::string why_conf_key_is_idle(const std::string& key, Meeting meeting) {
  const bool v2 = meeting == Meeting::kEtcdV2;
  const bool etcd = v2 || meeting == Meeting::kEtcdV3;
  if (key == "close_timeout" || key == "heartbeat_timeout") {
    return "the nodes talk over one connection each, which keep_alive_interval watches";
  }
  if (key == "rank") return "--node-rank says it";
  if (key == "timeout" && meeting != Meeting::kStatic && !v2) return "join_timeout says it here";
  if (key == "last_call_timeout" && meeting == Meeting::kStatic) {
    return "the static backend waits for all nodes";
  }
  if (key == "is_host" && etcd) return "the nodes elect their host";
  if (key == "store_type" && meeting != Meeting::kDynamic && meeting != Meeting::kFile) {
    return "it is c10d's";
  }
  const bool of_etcd = key == "protocol" || key == "etcd_prefix" || key == "cacert" ||
                       key == "cert" || key == "key" || key.starts_with("ssl_") || key == "ca_cert";
  return of_etcd && !etcd ? "it is etcd's" : "";
}

Result<void> check_rendezvous(const Options& options) {
  Result<Conf> conf = parse_rdzv_conf(options.rdzv_conf);
  if (!conf) return Error{0, "--rdzv-conf '" + options.rdzv_conf + "': " + conf.error().message};
  std::string backend = options.standalone ? "c10d" : options.rdzv_backend;
  Result<void> values = check_rdzv_conf(*conf, backend);
  if (!values) return Error{0, "--rdzv-conf: " + values.error().message};
  if (options.standalone || (backend == "c10d" && uses_file_store(*conf))) return {};
  std::string context = "--rdzv-endpoint '" + options.rdzv_endpoint + "': ";
  Result<Endpoint> endpoint = parse_endpoint(options.rdzv_endpoint);
  if (!endpoint) return Error{0, context + endpoint.error().message};
  bool given = !trim(options.rdzv_endpoint).empty();
  if (backend == "static" && given && !endpoint->port) {
    return Error{0, context +
                        "the port is missing; write HOST:PORT, or use --master-addr and "
                        "--master-port instead"};
  }
  return {};
}

}  // namespace muster
