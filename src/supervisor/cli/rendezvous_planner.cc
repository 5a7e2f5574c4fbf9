// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/rendezvous_planner.h"

#include <cmath>

#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

using Conf = std::map<std::string, std::string>;

constexpr int kUsage = 2;
constexpr int kDefaultMasterPort = 29500;
// The id travels in every hello and names keys in etcd.
constexpr size_t kMaxRunId = 1024;

Error usage(const std::string& message) {
  return Error{kUsage, "muster: " + message + "\n"};
}

Meeting meeting_of(const Options& options, const Conf& conf) {
  if (options.standalone) return Meeting::kStandalone;
  if (options.rdzv_backend == "c10d") {
    return uses_file_store(conf) ? Meeting::kFile : Meeting::kDynamic;
  }
  if (options.rdzv_backend == "etcd-v3") return Meeting::kEtcdV3;
  if (options.rdzv_backend.starts_with("etcd")) return Meeting::kEtcdV2;
  bool nothing_given = options.rdzv_endpoint.empty() && !options.master_port;
  return nothing_given && options.max_nodes == 1 ? Meeting::kLocal : Meeting::kStatic;
}

std::string nnodes_text(const Options& options) {
  std::string text = std::to_string(options.min_nodes);
  return options.min_nodes == options.max_nodes ? text
                                                : text + ":" + std::to_string(options.max_nodes);
}

// The checks of check_rdzv_conf() have passed: what is here is a number.
void set_seconds(const Conf& conf, const char* key, std::chrono::milliseconds& target) {
  auto found = conf.find(key);
  if (found == conf.end()) return;
  std::optional<std::chrono::milliseconds> value = parse_seconds(trim(found->second));
  if (value) target = *value;
}

void take_conf(const Conf& conf, RendezvousPlan& plan) {
  set_seconds(conf, "last_call_timeout", plan.last_call_timeout);
  set_seconds(conf, "read_timeout", plan.read_timeout);
  set_seconds(conf, "keep_alive_interval", plan.keep_alive_interval);
  // Each of the two names is one backend's word for the same; the other one is understood.
  const bool has_timeout = plan.meeting == Meeting::kStatic || plan.meeting == Meeting::kEtcdV2;
  if (has_timeout) set_seconds(conf, "timeout", plan.join_timeout);
  const bool taken = plan.meeting == Meeting::kStatic && conf.contains("timeout");
  if (!taken) set_seconds(conf, "join_timeout", plan.join_timeout);
  if (auto attempts = conf.find("keep_alive_max_attempt"); attempts != conf.end()) {
    plan.keep_alive_max_attempt =
        static_cast<int>(parse_int(attempts->second).value_or(plan.keep_alive_max_attempt));
  }
  if (auto is_host = conf.find("is_host"); is_host != conf.end()) {
    plan.is_host = parse_bool(is_host->second);
  }
  for (const char* key : {"protocol", "ssl_cert", "ssl_cert_key", "ca_cert", "cert", "key",
                          "cacert", "etcd_prefix"}) {
    if (auto found = conf.find(key); found != conf.end()) plan.etcd[key] = found->second;
  }
}

Result<void> check_etcd(const Conf& conf) {
  auto protocol = conf.find("protocol");
  if (protocol != conf.end() && protocol->second != "http" && protocol->second != "https") {
    return usage("--rdzv-conf: protocol=" + protocol->second + ": expected http or https");
  }
  for (auto [certificate, key] :
       {std::pair{"ssl_cert", "ssl_cert_key"}, std::pair{"cert", "key"}}) {
    if (conf.contains(certificate) == conf.contains(key)) continue;
    return usage(std::string("--rdzv-conf: ") + certificate + " and " + key +
                 " belong together: a certificate and its key");
  }
  return {};
}

// Where several nodes meet: the endpoint, or for static --master-addr and --master-port.
Result<void> take_endpoint(const Options& options, RendezvousPlan& plan) {
  const std::string backend = "--rdzv-backend " + options.rdzv_backend;
  if (plan.meeting == Meeting::kFile) {
    plan.file = options.rdzv_endpoint;
    if (!plan.file.empty()) return {};
    return usage(backend +
                 " with store_type=file and several nodes: give the path of a file that all nodes "
                 "see, the same on each: --rdzv-endpoint PATH");
  }
  const bool fixed = plan.meeting == Meeting::kStatic;
  if (plan.meeting == Meeting::kDynamic && options.rdzv_endpoint.empty()) {
    return usage(backend + " with --nnodes " + nnodes_text(options) +
                 ": where do the nodes meet? Give each of them the same --rdzv-endpoint HOST:PORT, "
                 "HOST being one of them");
  }
  Endpoint endpoint;
  std::string option = "--rdzv-endpoint '" + options.rdzv_endpoint + "': ";
  if (fixed && options.rdzv_endpoint.empty()) {
    Result<std::string> host = parse_host(trim(options.master_addr));
    if (!host) return usage("--master-addr '" + options.master_addr + "': " + host.error().message);
    endpoint = {*host, options.master_port.value_or(kDefaultMasterPort)};
    option = "--master-port " + std::to_string(*endpoint.port) + ": ";
  } else {
    Result<Endpoint> parsed = parse_endpoint(options.rdzv_endpoint);
    if (!parsed) return usage(option + parsed.error().message);
    endpoint = *parsed;
  }
  plan.endpoint_host = endpoint.host;
  plan.endpoint_port =
      endpoint.port.value_or(default_port(options.rdzv_backend)
                                 .value_or(options.master_port.value_or(kDefaultMasterPort)));
  if (plan.endpoint_port == 0) {
    return usage(option + "port 0 is a different port on each node: give one that is free");
  }
  return {};
}

Result<void> take_node_rank(const Options& options, RendezvousPlan& plan) {
  if (!options.was_given("node_rank")) return {};
  if (options.node_rank >= plan.max_nodes) {
    return usage("--node-rank " + std::to_string(options.node_rank) + ": with --nnodes " +
                 nnodes_text(options) + " the ranks of the nodes end at " +
                 std::to_string(plan.max_nodes - 1));
  }
  plan.node_rank = options.node_rank;
  // As with torchrun the first node of a fixed set is the one that the others come to, whatever
  // its address looks like from inside (a service name, a forwarded port).
  if (plan.meeting == Meeting::kStatic && !plan.is_host) plan.is_host = options.node_rank == 0;
  return {};
}

Result<void> plan_one_node(const Options& options, RendezvousPlan& plan) {
  plan.min_nodes = 1;
  plan.max_nodes = 1;
  const bool counts = plan.meeting == Meeting::kStatic;
  if (counts && options.node_rank > 0) {
    return usage("--node-rank " + std::to_string(options.node_rank) +
                 ": the job has one node, whose rank is 0; give --nnodes for more");
  }
  return {};
}

Result<void> plan_several_nodes(const Options& options, const Conf& conf, RendezvousPlan& plan) {
  plan.min_nodes = plan.meeting == Meeting::kStatic ? options.max_nodes : options.min_nodes;
  plan.max_nodes = options.max_nodes;
  take_conf(conf, plan);
  if (plan.meeting == Meeting::kEtcdV2 || plan.meeting == Meeting::kEtcdV3) {
    if (Result<void> fine = check_etcd(conf); !fine) return fine;
  }
  if (Result<void> taken = take_endpoint(options, plan); !taken) return taken;
  if (Result<void> taken = take_node_rank(options, plan); !taken) return taken;
  if (options.rdzv_id.size() > kMaxRunId) {
    return usage("--rdzv-id: a run id of " + std::to_string(options.rdzv_id.size()) +
                 " characters; at most " + std::to_string(kMaxRunId) + " fit");
  }
  if (options.local_addr.empty()) return {};
  Result<std::string> address = parse_host(trim(options.local_addr));
  if (!address)
    return usage("--local-addr '" + options.local_addr + "': " + address.error().message);
  plan.local_addr = *address;
  return {};
}

}  // namespace

Result<RendezvousPlan> plan_rendezvous(const Options& options) {
  Result<Conf> conf = parse_rdzv_conf(options.rdzv_conf);
  if (!conf) return usage("--rdzv-conf '" + options.rdzv_conf + "': " + conf.error().message);
  RendezvousPlan plan;
  plan.meeting = meeting_of(options, *conf);
  plan.local_addr = options.local_addr;
  plan.on_node_signal = options.on_node_signal;
  plan.grow_every = options.grow_every;
  plan.exit_barrier = options.exit_barrier_timeout;
  plan.store_allow = options.store_allow;
  if (plan.meeting == Meeting::kStandalone && options.min_nodes > 1) {
    return usage("--standalone is one node, --nnodes " + nnodes_text(options) +
                 " is more: leave one of them out");
  }
  const bool one = plan.meeting == Meeting::kStandalone || options.max_nodes == 1;
  Result<void> planned =
      one ? plan_one_node(options, plan) : plan_several_nodes(options, *conf, plan);
  if (!planned) return planned.error();
  return plan;
}

std::string meeting_point(const RendezvousPlan& plan) {
  if (plan.meeting == Meeting::kFile) return plan.file;
  const bool bracket = plan.endpoint_host.find(':') != std::string::npos;
  return (bracket ? "[" + plan.endpoint_host + "]" : plan.endpoint_host) + ":" +
         std::to_string(plan.endpoint_port);
}

}  // namespace muster
