// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/dry_run.h"

#include <array>

#include "supervisor/cli/machine.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/cli/rendezvous_planner.h"
#include "supervisor/cli/shell_quoted.h"
#include "supervisor/cli/store_place.h"

namespace muster {
namespace {

const char* meeting_name(Meeting meeting) {
  switch (meeting) {
    case Meeting::kStandalone:
    case Meeting::kLocal:
      break;
    case Meeting::kStatic:
      return "static";
    case Meeting::kDynamic:
      return "c10d";
    case Meeting::kFile:
      return "c10d, by a shared file";
    case Meeting::kEtcdV2:
      return "etcd, v2 keys";
    case Meeting::kEtcdV3:
      return "etcd, v3";
  }
  return "one node";
}

// How the nodes meet; the token is never shown.
std::string nodes_text(const RendezvousPlan& rendezvous) {
  const std::string most = std::to_string(rendezvous.max_nodes);
  std::string out = rendezvous.min_nodes == rendezvous.max_nodes
                        ? most
                        : std::to_string(rendezvous.min_nodes) + " to " + most;
  out +=
      " nodes meet at " + meeting_point(rendezvous) + " (" + meeting_name(rendezvous.meeting) + ")";
  if (rendezvous.node_rank) out += ", this is node " + std::to_string(*rendezvous.node_rank);
  if (rendezvous.is_host) out += *rendezvous.is_host ? ", the host" : ", not the host";
  return out + (rendezvous.token.empty() ? "\n" : ", with a token\n");
}

// Where the worker's files will be, apart from the characters that make the folder unique; empty
// without logs.
std::string log_folder(const LaunchPlan& plan, const WorkerPlan& worker) {
  const std::string& log_dir = plan.options.log_dir;
  if (log_dir == "/dev/null") return {};
  return (log_dir.empty() ? "<default folder>" : log_dir) + "/" + folder_name_for(plan.run_id) +
         "_XXXXXXXX/attempt_0/" + std::to_string(worker.local_rank) + "/";
}

// What the coordinator will say: known before only if there is one node.
Environment assigned(const LaunchPlan& plan, const WorkerPlan& worker) {
  const std::string rank = std::to_string(worker.local_rank);
  const std::string count = std::to_string(plan.workers.size());
  const std::string port = plan.master_port == 0 ? "<free port>" : std::to_string(plan.master_port);
  const std::pair<const char*, std::string> alone[] = {{"RANK", rank},
                                                       {"GROUP_RANK", "0"},
                                                       {"ROLE_RANK", rank},
                                                       {"WORLD_SIZE", count},
                                                       {"GROUP_WORLD_SIZE", "1"},
                                                       {"ROLE_WORLD_SIZE", count},
                                                       {"MASTER_ADDR", plan.master_addr}};
  Environment lines;
  for (const auto& [name, value] : alone) {
    const bool later = plan.rendezvous.several_nodes();
    lines.push_back(std::string(name) + "=" + (later ? "<when the nodes have met>" : value));
  }
  lines.push_back("MASTER_PORT=" + port);
  lines.emplace_back("TORCHELASTIC_RESTART_COUNT=0");
  return lines;
}

std::string worker_text(const LaunchPlan& plan, const WorkerPlan& worker) {
  std::string rank = std::to_string(worker.local_rank);
  std::string out = "\nworker " + rank + "\n  command ";
  for (const std::string& word : worker.argv)
    out += " " + shell_quoted(word);
  out += "\n";
  if (worker.executable != worker.argv.front()) out += "  program  " + worker.executable + "\n";
  Environment added = assigned(plan, worker);
  added.insert(added.end(), worker.environment.begin(), worker.environment.end());
  std::string folder = log_folder(plan, worker);
  added.emplace_back("TORCHELASTIC_ERROR_FILE=" + (folder.empty() ? "" : folder + "error.json"));
  const char* label = "  adds     ";
  for (const std::string& line : added) {
    size_t equals = line.find('=');
    out += label + line.substr(0, equals + 1) + shell_quoted(line.substr(equals + 1)) + "\n";
    label = "           ";
  }
  out += "  cpus     " +
         (worker.cpus.empty() ? std::string("not bound")
                              : format_ranges(worker.cpus) + " (" + worker.cpus_why + ")") +
         "\n";
  if (folder.empty()) return out + "  logs     none (--log-dir /dev/null)\n";
  return out + "  logs     " + folder + "stdout.log\n           " + folder + "stderr.log\n";
}

}  // namespace

std::string dry_run_text(const LaunchPlan& plan) {
  size_t count = plan.workers.size();
  std::string port = plan.master_port == 0 ? "any free port" : std::to_string(plan.master_port);
  std::string out = "run " + plan.run_id + " on " + plan.host + ", " + std::to_string(count) +
                    (count == 1 ? " worker" : " workers");
  if (!plan.nproc_why.empty()) out += " (" + plan.nproc_why + ")";
  out += "\n";
  const bool several = plan.rendezvous.several_nodes();
  if (several) out += nodes_text(plan.rendezvous);
  out += (several ? "store at the host's address, " : "store at " + plan.master_addr + ", ") +
         port + (plan.agent_store ? ", hosted by muster\n" : ", hosted by the workers\n");
  for (const std::string& line : plan.notes)
    out += "note: " + line + "\n";
  for (const std::string& line : plan.warnings)
    out += "warning: " + line + "\n";
  for (const WorkerPlan& worker : plan.workers)
    out += worker_text(plan, worker);
  return out;
}

}  // namespace muster
