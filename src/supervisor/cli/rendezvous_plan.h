// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace muster {

// How the workers of a job meet.
enum class Meeting {
  kStandalone,  // --standalone
  kLocal,       // one node and nothing given: the same without saying so
  kStatic,      // a fixed set of nodes at --master-addr or a static endpoint
  kDynamic,     // c10d at an endpoint
  kFile,        // c10d with store_type=file
  kEtcdV2,      // etcd, etcd-v2
  kEtcdV3,
};

// What a stop signal at one node is to mean.
enum class OnNodeSignal { kStopJob, kLeave };

// Everything about nodes finding each other, resolved from options, --rdzv-conf and the environment
// of an engine (Slurm, Kubernetes, Open MPI).
struct RendezvousPlan {
  Meeting meeting = Meeting::kLocal;
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank;  // only if it was given

  // The meeting point: host and port, or a path for kFile.
  std::string endpoint_host;
  int endpoint_port = 0;
  std::string file;
  std::optional<bool> is_host;  // rdzv-conf is_host
  std::string local_addr;       // --local-addr

  // What --rdzv-conf sets; torchrun's keys, with our defaults.
  std::chrono::milliseconds join_timeout{600'000};  // static: "timeout"
  std::chrono::milliseconds last_call_timeout{30'000};
  std::chrono::milliseconds read_timeout{60'000};  // one connection attempt, one etcd request
  std::chrono::milliseconds keep_alive_interval{1'000};
  int keep_alive_max_attempt = 3;  // missed heartbeats until a peer is lost
  // etcd's own: protocol (http), ssl_cert, ssl_cert_key, ca_cert (v2), cert, key, cacert,
  // etcd_prefix.
  std::map<std::string, std::string> etcd;

  OnNodeSignal on_node_signal = OnNodeSignal::kStopJob;
  std::chrono::milliseconds grow_every{0};    // --grow-every
  std::chrono::milliseconds exit_barrier{0};  // --exit-barrier-timeout, 0: none
  bool store_allow = false;                   // --store-allow: only joined nodes reach the store
  std::string token;                          // MUSTER_TOKEN or --token-file, "" for none

  // Whether more than this process is needed to decide anything.
  bool several_nodes() const { return max_nodes > 1; }
};

}  // namespace muster
