// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"
#include "supervisor/cli/rendezvous_plan.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

struct Machine;  // cli/machine.h

// How one worker is started, apart from what is known only per attempt (ranks, restart count,
// store, error file), which environment_for() adds.
struct WorkerPlan {
  int local_rank = 0;
  std::string executable;         // resolved path that execve gets
  std::vector<std::string> argv;  // argv[0] as the user wrote it; ${local_rank} substituted
  Environment environment;        // what it gets on top of LaunchPlan::inherited that does not
                                  // change between attempts; environment_for() adds the rest
  std::vector<int> cpus;          // CPU binding, empty = inherited mask
  std::string cpus_why;           // "numa node 0 of GPU 0", for --dry-run
};

// Everything resolved against this machine: what --dry-run prints and what the job runs.
struct LaunchPlan {
  Options options;
  std::string run_id;
  std::string host;                   // gethostname(), never looked up
  std::string master_addr;            // given to the workers; "" with several nodes, which are told
  std::string store_bind;             // address the store listens on; "": where discovery says
  int master_port = 0;                // 0 = any free port
  bool agent_store = true;            // TORCHELASTIC_USE_AGENT_STORE
  std::string nproc_why;              // "4 GPUs in CUDA_VISIBLE_DEVICES"
  std::string program_name;           // for the report: script or executable as the user gave it
  std::vector<WorkerPlan> workers;    // by local rank
  std::vector<std::string> notes;     // one-line remarks for the start ("OMP_NUM_THREADS=1 ...")
  std::vector<std::string> warnings;  // options without effect and the like, one line each
  Environment inherited;              // muster's own, what every worker's starts from
  RendezvousPlan rendezvous;
};

// Resolves options against the machine. An Error's code is the exit code that muster ends with: 2
// for a value that cannot be used here, 127 for a program that is missing, 126 for one that cannot
// be executed. Its message is whole lines, ready to print.
Result<LaunchPlan> make_plan(const Options& options, const Machine& machine,
                             const Environment& environment);

// --signals-to-handle as numbers: the signals that stop the job.
std::vector<int> stop_signals(const Options& options);

// What belongs to one worker in one attempt.
struct AttemptFiles {
  std::string error_file;       // empty when logs are off
  std::string timer_file;       // empty without a watchdog: what is inherited stays
  std::string page;             // nccl/report/worker_page.h; empty if there is none
  std::string recording{};      // where PyTorch's flight recorder writes, less the rank; empty when
                                // logs are off
  std::string progress{};       // MUSTER_PROGRESS; empty if there is none
  bool recording_pipe = false;  // whether the recorder may make a pipe there, to be asked through
};

// The whole environment of `worker` in one attempt.
Environment environment_for(const LaunchPlan& plan, const WorkerPlan& worker,
                            const Assignment& assignment, const AttemptFiles& files);

}  // namespace muster
