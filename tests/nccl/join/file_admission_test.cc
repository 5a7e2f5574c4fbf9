// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/file_admission.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace muster::comm::detail {

namespace {

using Kind = FileStore::Admission::Kind;

// A table as members leave it behind.
struct AdmissionTest {
  Table table;
  Identity self = Identity::own();

  static Place place(int rank, int attempt = 0, const std::string& run_id = "") {
    Place place;
    place.rank = rank;
    place.size = 4;
    place.attempt = attempt;
    place.run_id = run_id;
    return place;
  }
  void enter(const Place& who, const Identity& identity) {
    const auto entered = admission(Table(), true, who, identity, "f");
    for (const auto& [key, value] : entered->sets)
      table.set(key, value);
  }
  muster::Result<FileStore::Admission> ask(const Place& who, bool local_disk = true) const {
    return admission(table, local_disk, who, self, "file:///f");
  }
  Identity dead() const {
    Identity identity = self;
    identity.started += 1;
    return identity;
  }
  Identity elsewhere() const {
    Identity identity = self;
    identity.boot = "another";
    identity.host = "node7";
    return identity;
  }
};

}  // namespace

TEST_CASE_FIXTURE(AdmissionTest, "an empty file and one with other living ranks are entered") {
  CHECK(ask(place(0))->kind == Kind::kEnter);
  enter(place(1), self);
  CHECK(ask(place(0))->kind == Kind::kEnter);
  table.set("muster/comm/0/size", "4 1");
  table.set("member/x", "nonsense");
  CHECK(ask(place(0))->kind == Kind::kEnter);
}

TEST_CASE_FIXTURE(AdmissionTest, "any dead member of this host means an earlier job") {
  enter(place(1), self);
  enter(place(3), dead());
  CHECK(ask(place(0))->kind == Kind::kBeginAnew);
  CHECK(ask(place(1))->kind == Kind::kBeginAnew);
}

TEST_CASE_FIXTURE(AdmissionTest, "this rank alive is in the way, by pid") {
  enter(place(2), self);
  const auto answer = ask(place(2));
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().code == EEXIST);
  CHECK(answer.error().message == "file:///f: rank 2 is there already: pid " +
                                      std::to_string(getpid()) + " on " + self.host +
                                      ", which lives");
}

TEST_CASE_FIXTURE(AdmissionTest, "this rank on another host is in the way, and the file is named") {
  enter(place(2), elsewhere());
  CHECK(ask(place(1), false)->kind == Kind::kEnter);
  const auto answer = ask(place(2), false);
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().message ==
        "file:///f: rank 2 is there already: pid " + std::to_string(getpid()) +
            " on node7, of whom this host cannot know whether it lives; if no job uses the file "
            "any more, remove it");
  // On a disk of this host it can only be this host, before it was started again.
  CHECK(ask(place(2), true)->kind == Kind::kBeginAnew);
}

TEST_CASE_FIXTURE(AdmissionTest, "a container's process ids are another host's") {
  Identity contained = dead();
  contained.pid_space = "pid:[1]";
  enter(place(2), contained);
  CHECK(ask(place(1))->kind == Kind::kEnter);
  CHECK_FALSE(ask(place(2)).has_value());
}

TEST_CASE_FIXTURE(AdmissionTest, "a later attempt of the same run replaces an earlier, wherever") {
  enter(place(2, 0, "run"), elsewhere());
  CHECK(ask(place(2, 1, "run"), false)->kind == Kind::kBeginAnew);
  CHECK_FALSE(ask(place(2, 1, "other"), false).has_value());
  CHECK_FALSE(ask(place(2, 0, "run"), false).has_value());
}

TEST_CASE_FIXTURE(AdmissionTest, "a rank that has left waits for the others to end") {
  enter(place(0), self);
  enter(place(1), self);
  const auto gone = leaving_record(place(1));
  table.set(gone.first, gone.second);
  CHECK(ask(place(1))->kind == Kind::kComeLater);
  CHECK(ask(place(2))->kind == Kind::kEnter);
}

TEST_CASE_FIXTURE(AdmissionTest, "nobody is left when all have left or died") {
  enter(place(0), self);
  CHECK(nobody_left(table, place(0), self));
  enter(place(1), self);
  CHECK_FALSE(nobody_left(table, place(0), self));
  const auto gone = leaving_record(place(1));
  table.set(gone.first, gone.second);
  CHECK(nobody_left(table, place(0), self));
  enter(place(2), dead());
  CHECK(nobody_left(table, place(0), self));
  enter(place(3), elsewhere());
  CHECK_FALSE(nobody_left(table, place(0), self));
}

}  // namespace muster::comm::detail
