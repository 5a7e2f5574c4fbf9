// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/worker_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "loop/fd_limit.h"
#include "nccl/report/worker_page.h"

namespace muster {

namespace {

Result<UniqueFd> make_page() {
  UniqueFd page(::memfd_create("muster-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page) return errno_error(errno, "memfd_create");
  if (::ftruncate(page.get(), sizeof(worker_page::Page)) != 0) {
    return errno_error(errno, "ftruncate");
  }
  // A worker that cut it would have others in its process tree die of SIGBUS.
  if (::fcntl(page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return errno_error(errno, "seal");
  }
  return page;
}

}  // namespace

WorkerPages::WorkerPages(int workers) {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  if (known && limit.rlim_cur < descriptors_for(workers).own) {
    failed_ = Error{EMFILE, "with a limit of " + std::to_string(limit.rlim_cur) + " open files " +
                                std::to_string(workers) + " workers have none"};
  }
}

Result<std::string> WorkerPages::keep(Result<UniqueFd> file, Files& files, int local_rank) {
  if (!file) {
    failed_ = file.error();
    return *failed_;
  }
  std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file->get());
  files[local_rank] = std::make_shared<const UniqueFd>(std::move(*file));
  return path;
}

Result<std::string> WorkerPages::make(int local_rank) {
  if (failed_) return *failed_;
  return keep(make_page(), pages_, local_rank);
}

Result<std::string> WorkerPages::make_progress(int local_rank) {
  if (failed_) return *failed_;
  UniqueFd file(::memfd_create("muster-progress", MFD_CLOEXEC));
  if (!file) return keep(errno_error(errno, "memfd_create"), progress_, local_rank);
  return keep(std::move(file), progress_, local_rank);
}

std::shared_ptr<const UniqueFd> WorkerPages::find_in(const Files& files, int local_rank) {
  const auto found = files.find(local_rank);
  return found == files.end() ? nullptr : found->second;
}

}  // namespace muster
