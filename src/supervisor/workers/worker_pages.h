// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// The pages of shared memory in which an attempt's workers may say how it goes
// (nccl/report/worker_page.h). A page that nobody writes costs a descriptor and no memory; what was
// written stays readable when its worker is dead. Owned by the job, made anew for each attempt.
class WorkerPages {
 public:
  // Of so many workers. None are made where descriptors are so few that the workers' own pipes and
  // logs would have none left.
  explicit WorkerPages(int workers);

  // Makes one. The worker finds it under the path, from any depth of wrappers. Where it cannot be
  // made there will be no others either.
  Result<std::string> make(int local_rank);

  // Null: there is none. Shared, because it may be read on other threads while the attempt ends.
  std::shared_ptr<const UniqueFd> find(int local_rank) const;

 private:
  std::map<int, std::shared_ptr<const UniqueFd>> pages_;  // by local rank
  std::optional<Error> failed_;
};

}  // namespace muster
