// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "supervisor/cli/plan.h"
#include "supervisor/hook/failure_hook.h"
#include "supervisor/job/recorder.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/rendezvous.h"

namespace muster {

// The hook of --on-failure over the running job, null if none was asked for: it hears the verdicts
// of the recorder, and its own troubles go there and, once the job has ended, to the console. All
// that is given outlives it.
struct LiveHookParts {
  Loop& loop;
  Recorder& recorder;
  JobLogs& logs;
  const Rendezvous& link;
  const LaunchPlan& plan;
};
std::unique_ptr<FailureHook> make_live_hook(const LiveHookParts& parts,
                                            std::function<void()> on_idle);

}  // namespace muster
