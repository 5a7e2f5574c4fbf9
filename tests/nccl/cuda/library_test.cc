// SPDX-License-Identifier: Apache-2.0
// The real libraries, as far as they go without a GPU: skipped where they are not installed.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl/core/backend.h"
#include "skip.h"
#include "store/client.h"
#include "store/server_thread.h"

namespace muster::comm::detail {
namespace {

std::string agreed(const std::string& name) {
  for (const auto& [fact, value] : nccl_must_agree()) {
    if (fact == name) return value;
  }
  return "(not told)";
}

}  // namespace

TEST_CASE("the environment that must agree is told") {
  setenv("NCCL_PROTO", "LL", 1);
  CHECK(agreed("NCCL_PROTO") == "LL");
  unsetenv("NCCL_PROTO");
  CHECK(agreed("NCCL_PROTO").empty());
}

}  // namespace muster::comm::detail
