// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "supervisor/rendezvous/roster.h"

namespace muster {

// Who may not join, and what it is told. Pure.

// Far above any job; they bound what joiners can make the coordinator keep and the ranks it counts.
inline constexpr size_t kMaxSpares = 1'024;
inline constexpr int kMaxWorkersPerNode = 16'384;
inline constexpr int kMaxAttempt = 1'000'000;

// "2" or "1:4", as it is given to --nnodes.
std::string nnodes_text(const JobTerms& terms);

// In what a joiner's terms differ from the job's: "--nnodes is 2 here and 1:4 at node-a (the
// host); ...". "" if in nothing.
std::string terms_difference(const JobTerms& joiner, const JobTerms& job,
                             const std::string& host_name);

// Why the node cannot join a job that is not over; nullopt if it can. All of it is final.
// `excluded`: see Coordinator.
std::optional<std::string> why_not_admitted(const NodeFacts& facts, const JobTerms& terms,
                                            const std::string& host_name, const Roster& roster,
                                            const std::map<std::string, std::string>& excluded);

// "node-b is excluded from this job: rank 3, gpu_fault in attempt 2 (--failure-policy)".
std::string excluded_text(const std::string& host, const std::string& why);

}  // namespace muster
