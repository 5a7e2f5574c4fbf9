// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/stop_sender.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

std::string_view kind_from(const char* sender) {
  event::SignalReceived signal;
  signal.sender = sender;
  return kind_of_stop(signal);
}

}  // namespace

TEST_CASE("a stop by a batch system is told from one by a person") {
  CHECK(kind_from("root, slurmstepd") == "stopped_by_scheduler");
  CHECK(kind_from("uid 1000, pbs_mom") == "stopped_by_scheduler");
  CHECK(kind_from("root, containerd-shim") == "stopped_by_scheduler");
  CHECK(kind_from("outside the container") == "stopped_by_scheduler");
  CHECK(kind_from("alice, bash") == "stopped_by_user");
  CHECK(kind_from("alice") == "stopped_by_user");
  CHECK(kind_from("") == "stopped_by_user");  // the terminal
  CHECK(kind_from("HTTP from 127.0.0.1") == "stopped_by_user");
}

TEST_CASE("only a command's whole name counts") {
  CHECK(kind_from("alice, slurmstepd2") == "stopped_by_user");
  CHECK(kind_from("slurmstepd, bash") == "stopped_by_user");
  CHECK(kind_from("slurmstepd") == "stopped_by_user");
  CHECK(kind_from("alice, ") == "stopped_by_user");
}

}  // namespace muster
