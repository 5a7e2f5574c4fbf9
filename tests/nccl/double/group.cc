// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "faults.h"
#include "log.h"

namespace doubles {
namespace {

struct Job {
  std::shared_ptr<ncclComm> comm;
  std::function<ncclResult_t()> body;
};

// What this thread has called since ncclGroupStart.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Job> jobs;
  std::vector<Operation> operations;
};
thread_local Group t_group;

// One job per communicator, in the order in which they were first used.
std::vector<Job> launches(const std::vector<Operation>& operations) {
  std::vector<std::pair<std::shared_ptr<ncclComm>, std::vector<Operation>>> parts;
  for (const Operation& operation : operations) {
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const auto& entry) { return entry.first == operation.comm; });
    if (part == parts.end()) part = parts.insert(part, {operation.comm, {}});
    part->second.push_back(operation);
  }
  std::vector<Job> jobs;
  jobs.reserve(parts.size());
  for (auto& [comm, part] : parts) {
    jobs.push_back({comm, [comm = comm, part = std::move(part)] { return launch(comm, part); }});
  }
  return jobs;
}

// All at the same time, since each may wait for what another rank of this process does in another.
ncclResult_t run_all(std::vector<Job> jobs) {
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto run = [&job = jobs[i], &result = results[i]] {
      result = job.comm->run_job(std::move(job.body));
    };
    if (i + 1 == jobs.size() || !jobs[i].comm->blocking) {
      run();
    } else {
      threads.emplace_back(run);
    }
  }
  for (std::thread& thread : threads)
    thread.join();
  ncclResult_t all = ncclSuccess;
  for (ncclResult_t result : results) {
    if (all == ncclSuccess || all == ncclInProgress) all = result != ncclSuccess ? result : all;
  }
  return all;
}

// Launching chooses the communicator's device; the caller's choice is to stay.
ncclResult_t run_keeping_device(std::vector<Job> jobs) {
  int device = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return cuda_failure(error);
  ncclResult_t result = run_all(std::move(jobs));
  cudaSetDevice(device);
  return result;
}

ncclResult_t end_group() {
  Group group = std::exchange(t_group, Group{});
  if (group.error != ncclSuccess) return group.error;
  ncclResult_t result = ncclSuccess;
  if (!group.jobs.empty()) result = run_keeping_device(std::move(group.jobs));
  if (result != ncclSuccess && result != ncclInProgress) return result;
  if (group.operations.empty()) return result;
  return run_keeping_device(launches(group.operations));
}

}  // namespace

ncclResult_t enter_nccl(const char* function) {
  int code = fault(function);
  if (code != 0) warn("%s : fails because DOUBLE_FAULTS asks for it", function);
  return static_cast<ncclResult_t>(code);
}

ncclResult_t submit(Operation operation) {
  int device = 0;
  if (cudaError_t error = cudaStreamGetDevice(operation.stream, &device)) {
    return refuse(cuda_failure(error));
  }
  if (t_group.depth > 0) {
    t_group.operations.push_back(std::move(operation));
    return ncclSuccess;
  }
  return run_keeping_device(launches({operation}));
}

ncclResult_t submit_job(const std::shared_ptr<ncclComm>& comm, std::function<ncclResult_t()> body) {
  if (t_group.depth == 0) return comm->run_job(std::move(body));
  t_group.jobs.push_back({comm, std::move(body)});
  return ncclSuccess;
}

ncclResult_t refuse(ncclResult_t result) {
  if (t_group.depth > 0 && t_group.error == ncclSuccess) t_group.error = result;
  return result;
}

}  // namespace doubles

extern "C" {

ncclResult_t ncclGroupStart() {
  if (ncclResult_t fault = doubles::enter_nccl("ncclGroupStart")) return fault;
  ++doubles::t_group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (ncclResult_t fault = doubles::enter_nccl("ncclGroupEnd")) return fault;
  if (doubles::t_group.depth == 0) {
    doubles::warn("ncclGroupEnd: not in a group call.");
    return ncclInvalidUsage;
  }
  if (--doubles::t_group.depth > 0) return ncclSuccess;
  return doubles::end_group();
}

// Simulated work takes no time here, and nothing is begun.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (ncclResult_t fault = doubles::enter_nccl("ncclGroupSimulateEnd")) return fault;
  if (doubles::t_group.depth == 0) return ncclInvalidUsage;
  if (--doubles::t_group.depth > 0) return ncclSuccess;
  doubles::t_group = {};
  if (info) info->estimatedTime = 0;
  return ncclSuccess;
}

decltype(ncclGroupStart) pncclGroupStart __attribute__((alias("ncclGroupStart")));
decltype(ncclGroupEnd) pncclGroupEnd __attribute__((alias("ncclGroupEnd")));
decltype(ncclGroupSimulateEnd) pncclGroupSimulateEnd __attribute__((alias("ncclGroupSimulateEnd")));

}  // extern "C"
