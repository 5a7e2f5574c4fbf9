// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "supervisor/cli/engine.h"
#include "supervisor/cli/machine.h"
#include "supervisor/cli/numa.h"
#include "supervisor/cli/plan_warnings.h"
#include "supervisor/cli/program.h"
#include "supervisor/cli/rendezvous_planner.h"
#include "supervisor/cli/store_place.h"
#include "supervisor/cli/token.h"
#include "supervisor/cli/values.h"
#include "supervisor/cli/worker_count.h"
#include "supervisor/cli/worker_environment.h"

namespace muster {
namespace {

constexpr int kUsage = 2;

// Fills in the plan step by step. Lives for one call of make_plan, whose arguments it refers to.
class Planner {
 public:
  Planner(const Options& options, const Machine& machine, const Environment& environment)
      : machine_(machine), accelerators_(options, machine, environment) {
    plan_.options = options;
    plan_.inherited = environment;
    plan_.host = machine.host;
  }

  Result<LaunchPlan> make();

 private:
  Result<void> plan_meeting();
  Result<void> count();
  Result<void> check_summary_folder();
  void drop_unknown_signals();
  void choose_threads();
  Result<NumaFacts> numa_facts();
  Result<void> bind_cpus();
  Result<void> fill_workers(const Program& program);
  int threads_for(const WorkerPlan& worker) const;

  const Machine& machine_;
  Accelerators accelerators_;
  LaunchPlan plan_;
};

Result<void> Planner::plan_meeting() {
  Result<EngineChoice> engine = take_engine(plan_.options, plan_.inherited, plan_.host);
  if (!engine) return engine.error();
  plan_.notes = std::move(engine->notes);
  plan_.warnings = std::move(engine->warnings);
  Result<RendezvousPlan> rendezvous = plan_rendezvous(plan_.options);
  if (!rendezvous) return rendezvous.error();
  Result<Token> token = read_token(plan_.options, plan_.inherited);
  if (!token) return token.error();
  remove_token(plan_.inherited);
  plan_.rendezvous = std::move(*rendezvous);
  plan_.rendezvous.token = token->text;
  if (!token->warning.empty()) plan_.warnings.push_back(token->warning);
  StorePlace place = choose_store_place(plan_.options, plan_.rendezvous);
  plan_.run_id = place.run_id;
  plan_.master_addr = place.master_addr;
  plan_.master_port = place.port;
  plan_.store_bind = place.bind;
  plan_.agent_store = lookup(plan_.inherited, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE") != "1";
  return {};
}

Result<void> Planner::count() {
  Result<WorkerCount> count = count_workers(plan_.options, machine_, accelerators_);
  if (!count) return count.error();
  plan_.workers.resize(static_cast<size_t>(count->count));
  plan_.nproc_why = count->why;
  std::string workers = std::to_string(count->count) + (count->count == 1 ? " worker" : " workers");
  const Options& options = plan_.options;
  if (options.gpus && plan_.workers.size() > options.gpus->size()) {
    plan_.warnings.push_back(workers + " share " + std::to_string(options.gpus->size()) +
                             " devices of --gpus");
  }
  std::optional<std::string> outer = lookup(plan_.inherited, "CUDA_VISIBLE_DEVICES");
  if (options.gpus && outer) {
    plan_.warnings.push_back("--gpus replaces CUDA_VISIBLE_DEVICES=" + *outer);
  }
  return {};
}

void Planner::drop_unknown_signals() {
  std::vector<std::string>& names = plan_.options.signals_to_handle;
  for (const std::string& name : names) {
    if (signal_number(name)) continue;
    plan_.warnings.push_back("--signals-to-handle: there is no signal '" + name + "'");
  }
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) { return !signal_number(name); }),
              names.end());
}

int Planner::threads_for(const WorkerPlan& worker) const {
  int workers = static_cast<int>(plan_.workers.size());
  int share = std::max(1, usable_cores(machine_) / workers);
  if (worker.cpus.empty()) return share;
  // Workers that share a binding share its cores.
  auto same =
      std::count_if(plan_.workers.begin(), plan_.workers.end(),
                    [&worker](const WorkerPlan& other) { return other.cpus == worker.cpus; });
  return std::max(1, count_cores(machine_.sys_root, worker.cpus) / static_cast<int>(same));
}

// OMP_NUM_THREADS: --omp-threads, else what is inherited, else 1 if there are several workers.
void Planner::choose_threads() {
  const std::string& wanted = plan_.options.omp_threads;
  bool inherited = lookup(plan_.inherited, "OMP_NUM_THREADS").has_value();
  if (wanted.empty() && (inherited || plan_.workers.size() < 2)) return;
  for (WorkerPlan& worker : plan_.workers) {
    std::string threads = wanted.empty()     ? "1"
                          : wanted == "auto" ? std::to_string(threads_for(worker))
                                             : wanted;
    set_variable(worker.environment, "OMP_NUM_THREADS", threads);
  }
  if (wanted.empty()) {
    const int share = threads_for(plan_.workers.front());
    plan_.notes.push_back(
        "OMP_NUM_THREADS=1 for each worker" +
        (share > 1 ? "; --omp-threads auto would make it " + std::to_string(share) : ""));
  } else if (wanted == "auto") {
    plan_.notes.push_back(
        "OMP_NUM_THREADS=" + *lookup(plan_.workers.front().environment, "OMP_NUM_THREADS") +
        " for each worker: the cores divided among the workers");
  }
}

Result<NumaFacts> Planner::numa_facts() {
  NumaFacts facts{machine_.sys_root, machine_.allowed_cpus, {}};
  const DeviceList& gpus = accelerators_.visible_gpus();
  const DeviceList& devices = gpus.devices.empty() ? accelerators_.xpus() : gpus;
  for (const Device& device : devices.devices)
    facts.device_address.push_back(device.pci);
  if (!devices.devices.empty()) return facts;
  return Error{kUsage, "muster: --numa-binding " +
                           std::string(numa_mode_name(plan_.options.numa_binding)) +
                           ": No accelerator available: " + gpus.why_none + "\n"};
}

Result<void> Planner::bind_cpus() {
  NumaMode mode = plan_.options.numa_binding;
  if (mode == NumaMode::kNone) return {};
  Result<NumaFacts> facts = numa_facts();
  if (!facts) return facts.error();
  for (WorkerPlan& worker : plan_.workers) {
    Result<CpuBinding> binding = numa_binding(mode, *facts, worker.local_rank);
    if (!binding) return Error{kUsage, "muster: " + binding.error().message + "\n"};
    worker.cpus = binding->cpus;
    worker.cpus_why = binding->why;
  }
  return {};
}

Result<void> Planner::fill_workers(const Program& program) {
  plan_.program_name = program.name;
  std::optional<std::string> devices = visible_devices(plan_.options, plan_.inherited);
  int count = static_cast<int>(plan_.workers.size());
  for (int rank = 0; rank < count; ++rank) {
    WorkerPlan& worker = plan_.workers[static_cast<size_t>(rank)];
    worker.local_rank = rank;
    worker.executable = program.executable;
    for (const std::string& argument : program.argv) {
      // As with torchrun, the executable's own name is taken as it is.
      bool first = &argument == &program.argv.front();
      worker.argv.push_back(first ? argument : substitute_local_rank(argument, rank));
    }
    Result<Environment> own = worker_environment(plan_, rank, devices);
    if (!own) return own.error();
    worker.environment = std::move(*own);
  }
  return {};
}

// Found out now, not after hours of training.
Result<void> Planner::check_summary_folder() {
  const std::string& file = plan_.options.summary_file;
  const size_t slash = file.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string folder = file.substr(0, slash);
  if (::access(folder.c_str(), W_OK) == 0) return {};
  const int reason = errno;
  return Error{kUsage, "muster: --summary " + file + ": " +
                           errno_error(reason, "folder " + folder).message + "\n"};
}

Result<LaunchPlan> Planner::make() {
  if (Result<void> planned = plan_meeting(); !planned) return planned.error();
  if (Result<void> counted = count(); !counted) return counted.error();
  if (Result<void> checked = check_summary_folder(); !checked) return checked.error();
  drop_unknown_signals();
  Result<Program> program = resolve_program(plan_.options, plan_.inherited, plan_.host);
  if (!program) return program.error();
  if (Result<void> filled = fill_workers(*program); !filled) return filled.error();
  if (Result<void> bound = bind_cpus(); !bound) return bound.error();
  choose_threads();
  int workers = static_cast<int>(plan_.workers.size());
  for (std::string& line : options_without_effect(plan_.options, plan_.rendezvous, workers)) {
    plan_.warnings.push_back(std::move(line));
  }
  return std::move(plan_);
}

}  // namespace

std::vector<int> stop_signals(const Options& options) {
  std::vector<int> numbers;
  for (const std::string& name : options.signals_to_handle) {
    if (auto number = signal_number(name)) numbers.push_back(*number);
  }
  return numbers;
}

Result<LaunchPlan> make_plan(const Options& options, const Machine& machine,
                             const Environment& environment) {
  return Planner(options, machine, environment).make();
}

}  // namespace muster
