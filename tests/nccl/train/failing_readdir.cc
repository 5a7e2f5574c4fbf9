// SPDX-License-Identifier: Apache-2.0
// This program's readdir() comes before the C library's, also for the C++ library.
#include "nccl/train/failing_readdir.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>
#include <mutex>
#include <string_view>

namespace {

std::mutex mutex;
std::string fails_after;    // "": nowhere
DIR* fails_next = nullptr;  // has given such a name

bool fails(DIR* folder, const dirent* entry) {
  const std::lock_guard lock(mutex);
  const bool now = folder == fails_next;
  if (now) fails_next = nullptr;
  if (!now && entry != nullptr && !fails_after.empty() &&
      std::string_view(entry->d_name).starts_with(fails_after)) {
    fails_next = folder;
  }
  return now;
}

void set(const std::string& after) {
  const std::lock_guard lock(mutex);
  fails_after = after;
  fails_next = nullptr;
}

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
  using Readdir = dirent* (*)(DIR*);
  static const auto real = reinterpret_cast<Readdir>(::dlsym(RTLD_NEXT, "readdir"));
  dirent* entry = real(folder);
  if (!fails(folder, entry)) return entry;
  errno = EIO;
  return nullptr;
}

namespace muster::train_test {

FailingReaddir::FailingReaddir(const std::string& after) {
  set(after);
}
FailingReaddir::~FailingReaddir() {
  set("");
}

}  // namespace muster::train_test
