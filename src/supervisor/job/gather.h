// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "loop/loop.h"
#include "supervisor/cli/plan.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/evidence/surroundings.h"
#include "supervisor/job/state.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/workers/worker_pages.h"

namespace muster {

// Collects what is known about every worker of this node that did not end well, in the order of
// their deaths, and hands it over in the loop. Files (error files, the ends of redirected logs) are
// read in the pool: they may lie on a file system that stalls; then the verdict has to do without
// them. What stands around the deaths (evidence/look.h) is looked at beside that, and has half a
// second more.
void gather_evidence(Loop& loop, const AttemptState& attempt, const JobLogs& logs,
                     const WorkerPages& pages, Surroundings& surroundings,
                     const std::optional<event::SpawnFailed>& spawn_failed,
                     std::function<void(std::vector<Evidence>)> on_gathered);

// Where the workers of this node write without being told to.
std::vector<Folder> worker_folders(const LaunchPlan& plan, const JobLogs& logs);

// The same for one that has just died, while the others run.
void look_at(Loop& loop, const AttemptState& attempt, const RankState& dead, const JobLogs& logs,
             const WorkerPages& pages, const Surroundings& surroundings,
             std::function<void(const Evidence&)> on_looked);

}  // namespace muster
