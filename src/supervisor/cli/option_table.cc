// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/option_table.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "supervisor/cli/failure_options.h"
#include "supervisor/cli/log_options.h"
#include "supervisor/cli/option_setters.h"

namespace muster {
namespace {

using enum OptionGroup;
namespace s = setters;

constexpr std::array kGroups = {kWorkers, kProgram, kFailure, kLogs, kRendezvous, kAbout};

std::vector<OptionSpec> worker_options() {
  return {
      {.name = "nproc-per-node",
       .value_name = "N|auto|cpu|gpu|xpu",
       .group = kWorkers,
       .torchrun = true,
       .environment = true,
       .default_text = "1",
       .choices = {"auto", "cpu", "gpu", "xpu"},
       .completes = Completes::kChoices,
       .set = s::nproc_per_node,
       .help =
           "Workers on this node. gpu and xpu start one per device that is visible, cpu one per "
           "CPU that this process may use, auto one per device if there are any, else as cpu."},
      {.name = "gpus",
       .value_name = "LIST",
       .group = kWorkers,
       .environment = true,
       .set = s::gpus,
       .help =
           "GPUs for this job, such as 2,4,7 or 0-3 or GPU-<uuid>. Becomes CUDA_VISIBLE_DEVICES; "
           "without --nproc-per-node there is one worker per GPU named."},
      {.name = "virtual-local-rank",
       .group = kWorkers,
       .torchrun = true,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::virtual_local_rank>,
       .help = "Every worker gets LOCAL_RANK=0 and sees one device only, its own entry of "
               "CUDA_VISIBLE_DEVICES: for scripts that always use device 0."},
      {.name = "numa-binding",
       .value_name = "MODE",
       .group = kWorkers,
       .torchrun = true,
       .choices = {"node", "socket", "exclusive", "core-complex"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::numa_binding,
       .help =
           "Bind each worker to CPUs near its device: node takes the device's NUMA node, socket "
           "its whole socket, exclusive a share of the node's cores that no other device's "
           "worker has, core-complex the cores under one last-level cache."},
      {.name = "omp-threads",
       .value_name = "N|auto",
       .group = kWorkers,
       .environment = true,
       .choices = {"auto"},
       .completes = Completes::kChoices,
       .set = s::omp_threads,
       .help = "OMP_NUM_THREADS of each worker; auto divides the cores among the workers. Without "
               "it, several workers get 1 unless OMP_NUM_THREADS is set, as with torchrun."},
  };
}

std::vector<OptionSpec> program_options() {
  return {
      {.name = "module",
       .short_name = 'm',
       .group = kProgram,
       .torchrun = true,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::module>,
       .help = "The script is a module name, run as by python -m."},
      {.name = "no-python",
       .group = kProgram,
       .torchrun = true,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::no_python>,
       .help = "The script is a program, looked up in PATH and executed as it is. Executables that "
               "are ELF files or begin with #! and do not end in .py need no flag."},
      {.name = "run-path",
       .group = kProgram,
       .torchrun = true,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::run_path>,
       .help = "Run the script with runpy in a fresh interpreter, as __main__."},
      {.name = "start-method",
       .value_name = "METHOD",
       .group = kProgram,
       .torchrun = true,
       .environment = true,
       .default_text = "spawn",
       .choices = {"spawn", "fork", "forkserver"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::text<&Options::start_method>,
       .help = "Accepted for torchrun's sake: each worker is a fresh process always."},
      {.name = "role",
       .value_name = "NAME",
       .group = kProgram,
       .torchrun = true,
       .environment = true,
       .default_text = "default",
       .set = s::text<&Options::role>,
       .help = "Name of what the workers do: ROLE_NAME, and ${role_name} in line prefixes."},
  };
}

std::vector<OptionSpec> node_options() {
  return {
      {.name = "standalone",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::standalone>,
       .help = "One node, any free port, a fresh run id: what happens anyway when nothing of this "
               "section is given."},
      {.name = "nnodes",
       .value_name = "N|MIN:MAX",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "1:1",
       .set = s::nnodes,
       .help =
           "Nodes of the job; in a step of Slurm's and under mpirun those that are there. MIN:MAX "
           "makes it elastic: it runs with any number between, grows when a node joins, and "
           "goes on with those left when one is lost."},
      {.name = "node-rank",
       .value_name = "N",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "0 for static",
       .set = s::node_rank,
       .help = "This node's place among the nodes. With the static backend node 0 is where all "
               "meet; elsewhere ranks count if every node gives one, else nodes stand in the order "
               "in which they come."},
      {.name = "local-addr",
       .value_name = "HOST",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .set = s::text<&Options::local_addr>,
       .help = "Address by which this node is reached, instead of one that is found out."},
      {.name = "on-node-signal",
       .value_name = "stop|leave",
       .group = kRendezvous,
       .environment = true,
       .default_text = "stop",
       .choices = {"stop", "leave"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::on_node_signal,
       .help = "What a stop signal at one node of several means: stop stops the job, all ranks at "
               "the same moment; leave takes this node out, the job goes on without it."},
      {.name = "grow-every",
       .value_name = "SECONDS",
       .group = kRendezvous,
       .environment = true,
       .default_text = "0",
       .set = s::grow_every,
       .help = "Let a running elastic job restart for nodes that join at most this often; 0 is at "
               "once."},
      {.name = "exit-barrier-timeout",
       .value_name = "SECONDS",
       .group = kRendezvous,
       .environment = true,
       .default_text = "0",
       .set = s::exit_barrier_timeout,
       .help = "How long nodes whose workers have succeeded wait for the others, which keep their "
               "store until then; 0 waits as long as they live."},
  };
}

std::vector<OptionSpec> rendezvous_options() {
  return {
      {.name = "rdzv-backend",
       .value_name = "NAME",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "static",
       .choices = {"static", "c10d", "etcd", "etcd-v2", "etcd-v3"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::text<&Options::rdzv_backend>,
       .help = "How nodes find each other. static: a fixed number of them at --master-addr; c10d: "
               "at --rdzv-endpoint, whose machine runs a node too; etcd: in an etcd server, so "
               "that any node may be lost. etcd and etcd-v2 speak its v2 API, etcd-v3 the v3 JSON "
               "gateway."},
      {.name = "rdzv-endpoint",
       .value_name = "HOST:PORT",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .set = s::rdzv_endpoint,
       .help = "Where nodes meet, the same on each; an IPv6 address stands in brackets. The port "
               "is 29400 for c10d and 2379 for etcd if none is given. With store_type=file it is "
               "a path that all nodes see."},
      {.name = "rdzv-id",
       .value_name = "ID",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "a fresh UUID; none with --master-port, an endpoint, c10d or several nodes",
       .set = s::rdzv_id,
       .help = "Name of the run, the same on each node: TORCHELASTIC_RUN_ID and the run's folder."},
      {.name = "rdzv-conf",
       .value_name = "K=V,...",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .set = s::rdzv_conf,
       .help = "Settings of the backend; may be repeated. join_timeout=600 (timeout for static) "
               "bounds the wait for nodes, last_call_timeout=30 that for more than MIN; "
               "keep_alive_interval=1 and keep_alive_max_attempt=3 say when a silent node is lost; "
               "is_host=1 makes this node the meeting point; protocol, cacert, cert and key are "
               "etcd's."},
      {.name = "master-addr",
       .value_name = "HOST",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "127.0.0.1",
       .set = s::non_empty_text<&Options::master_addr>,
       .help = "Node 0's host, where all meet, for the static backend: MASTER_ADDR of the "
               "workers."},
      {.name = "master-port",
       .value_name = "PORT",
       .group = kRendezvous,
       .torchrun = true,
       .environment = true,
       .default_text = "any free port; 29500 with several nodes",
       .set = s::master_port,
       .help = "The port there, for the static backend: MASTER_PORT of the workers."},
      {.name = "token-file",
       .value_name = "FILE",
       .group = kRendezvous,
       .environment = true,
       .default_text = "MUSTER_TOKEN, if it is set",
       .completes = Completes::kFile,
       .set = s::non_empty_text<&Options::token_file>,
       .help = "File with a secret that all nodes of the job share: a node that cannot prove that "
               "it knows it is refused. Workers never see it."},
      {.name = "store-allow",
       .group = kRendezvous,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::store_allow>,
       .help = "Only addresses of nodes that have joined, and this machine, reach the workers' "
               "store."},
  };
}

std::vector<OptionSpec> about_options() {
  return {
      {.name = "help",
       .short_name = 'h',
       .torchrun = true,
       .action = OptionAction::kHelp,
       .help = "Show this and exit."},
      {.name = "version",
       .action = OptionAction::kVersion,
       .help = "Show the versions of muster and of the libraries in it, and exit."},
      {.name = "dry-run",
       .default_text = "off",
       .set = s::flag<&Options::dry_run>,
       .help =
           "Show what would be started, with environment, CPU binding and log files, and exit."},
      {.name = "print-completion",
       .value_name = "SHELL",
       .torchrun = true,
       .choices = {"bash", "zsh", "tcsh", "fish"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .action = OptionAction::kCompletion,
       .help = "Print a completion script, as in: eval \"$(muster --print-completion bash)\"."},
  };
}

std::vector<OptionSpec> make_table() {
  std::vector<OptionSpec> table;
  for (auto part :
       {worker_options, program_options, failure_options, stream_options, run_folder_options,
        console_options, terminal_options, node_options, rendezvous_options, about_options}) {
    std::vector<OptionSpec> options = part();
    table.insert(table.end(), options.begin(), options.end());
  }
  return table;
}

}  // namespace

std::string OptionSpec::destination() const {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string OptionSpec::variable() const {
  if (!environment) return {};
  std::string out = "PET_" + destination();
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

const std::vector<OptionSpec>& option_table() {
  static const std::vector<OptionSpec> table = make_table();
  return table;
}

std::string_view group_title(OptionGroup group) {
  switch (group) {
    case kWorkers:
      return "Workers and their devices";
    case kProgram:
      return "The program";
    case kFailure:
      return "Failure and stopping";
    case kLogs:
      return "Logs and console";
    case kRendezvous:
      return "Nodes and rendezvous";
    case kAbout:
      break;
  }
  return "About muster";
}

std::span<const OptionGroup> option_groups() {
  return kGroups;
}

}  // namespace muster
