// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/stop_sender.h"

#include <algorithm>
#include <iterator>

namespace muster {

namespace {

// The programs that end other people's jobs: at a time limit, for a job with more right to the
// node, before the node goes down. As the kernel names them, cut after
// 15 characters.
constexpr std::string_view kSchedulers[] = {
    "slurmstepd",     "slurmd",
    "slurmctld",  // Slurm
    "pbs_mom",        "pbs_attach",
    "sge_shepherd",   "sge_execd",  // PBS, Grid Engine
    "sbatchd",        "res",
    "condor_starter", "condor_startd",  // LSF, HTCondor
    "flux-broker",    "flux-shell",
    "flux-imp",  // Flux
    "kubelet",        "containerd-shim",
    "conmon",         "crio",  // containers
    "dockerd",        "docker-init",
    "tini",           "dumb-init",
    "nomad",          "mesos-executor",
    "yarn",           "systemd",
    "init",           "shutdown",
};

// "alice, slurmstepd" names a user and a command.
std::string_view command_of(std::string_view sender) {
  const size_t comma = sender.rfind(", ");
  return comma == std::string_view::npos ? std::string_view() : sender.substr(comma + 2);
}

}  // namespace

std::string_view kind_of_stop(const event::SignalReceived& signal) {
  constexpr std::string_view kScheduler = "stopped_by_scheduler";
  // Whoever has no pid in here is the runtime that this container runs under.
  if (signal.sender == "outside the container") return kScheduler;
  const std::string_view command = command_of(signal.sender);
  const auto* known = std::find(std::begin(kSchedulers), std::end(kSchedulers), command);
  return known != std::end(kSchedulers) ? kScheduler : "stopped_by_user";
}

}  // namespace muster
