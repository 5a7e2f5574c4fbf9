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
// (nccl/report/worker_page.h), and the files in memory in which any program may write how far it
// is. One that nobody writes costs a descriptor and no memory; what was written stays readable when
// its worker is dead. Owned by the job, made anew for each attempt.
class WorkerPages {
 public:
  // Of so many workers. None are made where descriptors are so few that the workers' own pipes and
  // logs would have none left.
  explicit WorkerPages(int workers);

  // Makes one. The worker finds it under the path, from any depth of wrappers. Where it cannot be
  // made there will be no others either.
  Result<std::string> make(int local_rank);

  // The same for a file into which the worker writes its progress, and no other.
  Result<std::string> make_progress(int local_rank);

  // Null: there is none. Shared, because it may be read on other threads while the attempt ends.
  std::shared_ptr<const UniqueFd> find(int local_rank) const { return find_in(pages_, local_rank); }
  std::shared_ptr<const UniqueFd> find_progress(int local_rank) const {
    return find_in(progress_, local_rank);
  }

 private:
  using Files = std::map<int, std::shared_ptr<const UniqueFd>>;  // by local rank
  static std::shared_ptr<const UniqueFd> find_in(const Files& files, int local_rank);
  Result<std::string> keep(Result<UniqueFd> file, Files& files, int local_rank);

  Files pages_;
  Files progress_;
  std::optional<Error> failed_;
};

}  // namespace muster
