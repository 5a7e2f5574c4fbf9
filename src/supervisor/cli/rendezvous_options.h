// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/options.h"

namespace muster {

// The grammars of --rdzv-endpoint and --rdzv-conf, pure.

struct Endpoint {
  std::string host;
  std::optional<int> port;
};

// "host:port", "host", "[::1]:port", "[fe80::1%eth0]:port"; the empty text is localhost.
Result<Endpoint> parse_endpoint(std::string_view text);

// A name, or an address as it stands in an endpoint, brackets removed.
Result<std::string> parse_host(std::string_view text);

// "localhost", "127.0.0.1", "::1", "[::1]" and their like: names and addresses that lead every
// machine to itself. By the text alone; nothing is looked up.
bool is_loopback_host(std::string_view host);

// With store_type=file the endpoint is a path.
bool uses_file_store(const std::map<std::string, std::string>& conf);

// 29400 for c10d, 2379 for etcd; nothing for static, which needs one.
std::optional<int> default_port(const std::string& backend);

// "k1=v1,k2=v2": the last one of a key wins.
Result<std::map<std::string, std::string>> parse_rdzv_conf(std::string_view text);

// Whether the values of known keys make sense for `backend`.
Result<void> check_rdzv_conf(const std::map<std::string, std::string>& conf,
                             const std::string& backend);

// Keys that no backend knows.
std::vector<std::string> unknown_conf_keys(const std::map<std::string, std::string>& conf);

// Why a known key changes nothing for a job of several nodes, "" if it does.
std::string why_conf_key_is_idle(const std::string& key, Meeting meeting);

// The name of a known key that `key` was probably meant to be, empty if none is near.
std::string nearest_conf_key(const std::string& key);

// Endpoint and conf together, for the backend that was chosen. The message names the option.
Result<void> check_rendezvous(const Options& options);

}  // namespace muster
