// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/rendezvous_planner.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"
#include "supervisor/cli/plan_warnings.h"

namespace muster {

using std::chrono::milliseconds;

TEST_SUITE_BEGIN("rendezvous plan");

namespace {

struct Fixture : PlanFixture {
  RendezvousPlan meet(Strings words) const {
    words.emplace_back("x.py");
    Result<RendezvousPlan> made = plan_rendezvous(options(words));
    if (!made) FAIL(made.error().message);
    return *made;
  }

  std::string refused(Strings words) const {
    words.emplace_back("x.py");
    return error(words).message;
  }

  Strings warned(Strings words) const {
    words.emplace_back("x.py");
    return plan(words).warnings;
  }

  static Strings c10d(const std::string& endpoint, Strings more = {}) {
    Strings words = {"--nnodes", "2:4", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a static set waits for MAX nodes at the master's address") {
  RendezvousPlan made = meet({"--nnodes", "1:3", "--master-addr", "n1", "--master-port", "1234"});
  CHECK(made.meeting == Meeting::kStatic);
  CHECK(made.min_nodes == 3);
  CHECK(made.max_nodes == 3);
  CHECK(meeting_point(made) == "n1:1234");
  CHECK(!made.node_rank);
  CHECK(!made.is_host);
  CHECK(has_line(warned({"--nnodes", "1:3", "--master-addr", "n1"}), "waits for all 3 nodes"));
  CHECK(meeting_point(meet({"--nnodes", "2", "--master-addr", "n1"})) == "n1:29500");
  CHECK(meeting_point(meet({"--nnodes", "2", "--master-addr", "fd00::7"})) == "[fd00::7]:29500");
  CHECK(meeting_point(meet({"--nnodes", "2", "--rdzv-endpoint", "n2:7"})) == "n2:7");
}

TEST_CASE_FIXTURE(Fixture, "the first of a static set is the host whatever its address") {
  CHECK(meet({"--nnodes", "2", "--node-rank", "0"}).is_host == true);
  CHECK(meet({"--nnodes", "2", "--node-rank", "1"}).is_host == false);
  CHECK(meet({"--nnodes", "2", "--node-rank", "1"}).node_rank == 1);
  CHECK(meet({"--nnodes", "2", "--node-rank", "1", "--rdzv-conf", "is_host=1"}).is_host == true);
  CHECK(!meet(c10d("n1", {"--node-rank", "1"})).is_host);
  CHECK(meet(c10d("n1", {"--node-rank", "1"})).node_rank == 1);
  environment.emplace_back("PET_NODE_RANK=1");
  CHECK(meet({"--nnodes", "2"}).node_rank == 1);
}

TEST_CASE_FIXTURE(Fixture, "each backend has its port and its kind of meeting") {
  CHECK(meeting_point(meet(c10d("n1"))) == "n1:29400");
  CHECK(meet(c10d("n1")).meeting == Meeting::kDynamic);
  CHECK(meet(c10d("n1")).min_nodes == 2);
  CHECK(meeting_point(meet(c10d("[::1]:5"))) == "[::1]:5");
  CHECK(meeting_point(meet(c10d("[fe80::1%eth0]:29500"))) == "[fe80::1%eth0]:29500");
  auto etcd = [this](const std::string& name) {
    return meet({"--nnodes", "2", "--rdzv-backend", name, "--rdzv-endpoint", "e"});
  };
  CHECK(meeting_point(etcd("etcd")) == "e:2379");
  CHECK(etcd("etcd").meeting == Meeting::kEtcdV2);
  CHECK(etcd("etcd-v2").meeting == Meeting::kEtcdV2);
  CHECK(etcd("etcd-v3").meeting == Meeting::kEtcdV3);
  RendezvousPlan file = meet(c10d("/shared/job", {"--rdzv-conf", "store_type=FILE"}));
  CHECK(file.meeting == Meeting::kFile);
  CHECK(file.file == "/shared/job");
}

TEST_CASE_FIXTURE(Fixture, "every key of --rdzv-conf arrives, repeats included") {
  RendezvousPlan plain = meet(c10d("n1"));
  CHECK(plain.join_timeout == milliseconds(600'000));
  CHECK(plain.last_call_timeout == milliseconds(30'000));
  CHECK(plain.read_timeout == milliseconds(60'000));
  CHECK(plain.keep_alive_interval == milliseconds(1'000));
  CHECK(plain.keep_alive_max_attempt == 3);
  RendezvousPlan made =
      meet(c10d("n1", {"--rdzv-conf", "join_timeout=5,last_call_timeout=2,keep_alive_interval=9",
                       "--rdzv-conf", "keep_alive_interval=0.25,keep_alive_max_attempt=7",
                       "--rdzv-conf", " is_host = yes , read_timeout=4"}));
  CHECK(made.join_timeout == milliseconds(5'000));
  CHECK(made.last_call_timeout == milliseconds(2'000));
  CHECK(made.read_timeout == milliseconds(4'000));
  CHECK(made.keep_alive_interval == milliseconds(250));
  CHECK(made.keep_alive_max_attempt == 7);
  CHECK(made.is_host == true);
  auto fixed = [this](const std::string& conf) {
    return meet({"--nnodes", "2", "--rdzv-conf", conf}).join_timeout.count();
  };
  CHECK(fixed("timeout=3") == 3'000);
  CHECK(fixed("join_timeout=4") == 4'000);
  CHECK(fixed("timeout=3,join_timeout=4") == 3'000);
}

TEST_CASE_FIXTURE(Fixture, "etcd's settings arrive as they are and are checked in pairs") {
  auto etcd = [](const std::string& conf) {
    return Strings{"--nnodes",        "2", "--rdzv-backend", "etcd-v3",
                   "--rdzv-endpoint", "e", "--rdzv-conf",    conf};
  };
  RendezvousPlan made = meet(etcd("protocol=https,cacert=/c,cert=/d,key=/e,etcd_prefix=/p"));
  CHECK(made.etcd.at("protocol") == "https");
  CHECK(made.etcd.at("key") == "/e");
  CHECK(made.etcd.at("etcd_prefix") == "/p");
  CHECK(has(refused(etcd("protocol=ftp")), "protocol=ftp: expected http or https"));
  CHECK(has(refused(etcd("cert=/d")), "cert and key belong together"));
  CHECK(has(refused(etcd("ssl_cert_key=/d")), "ssl_cert and ssl_cert_key belong together"));
  CHECK(has_line(warned(etcd("is_host=1")), "is_host has no effect: the nodes elect their host"));
  CHECK(has_line(warned(etcd("cacert=/c")), "without --rdzv-id this job meets every other job"));
}

TEST_CASE_FIXTURE(Fixture, "the options of several nodes arrive") {
  RendezvousPlan made =
      meet(c10d("n1", {"--on-node-signal", "leave", "--exit-barrier-timeout", "2.5", "--grow-every",
                       "600", "--store-allow", "--local-addr", "10.1.1.1"}));
  CHECK(made.on_node_signal == OnNodeSignal::kLeave);
  CHECK(made.exit_barrier == milliseconds(2'500));
  CHECK(made.grow_every == milliseconds(600'000));
  CHECK(made.store_allow);
  CHECK(made.local_addr == "10.1.1.1");
  CHECK(!meet(c10d("n1")).store_allow);
  CHECK(meet(c10d("n1")).on_node_signal == OnNodeSignal::kStopJob);
}

TEST_CASE_FIXTURE(Fixture, "what cannot make one job is refused by its name") {
  auto says = [this](const Strings& words, const std::string& part) {
    const std::string message = refused(words);
    CAPTURE(message);
    CHECK(has(message, part));
  };
  says({"--nnodes", "2", "--rdzv-backend", "c10d"}, "Give each of them the same --rdzv-endpoint");
  says(c10d("n1:0"), "--rdzv-endpoint 'n1:0': port 0");
  says({"--nnodes", "2", "--master-port", "0"}, "--master-port 0: port 0");
  says({"--nnodes", "2", "--node-rank", "2"}, "--node-rank 2: with --nnodes 2");
  says(c10d("n1", {"--node-rank", "4"}), "end at 3");
  says({"--nnodes", "2", "--master-addr", "a b"}, "--master-addr 'a b': 'a b' is no host name");
  says({"--nnodes", "2", "--master-addr", "10.0.0.256"}, "'10.0.0.256' is no IPv4 address");
  says(c10d("n1", {"--local-addr", "x/y"}), "--local-addr 'x/y'");
  says(c10d("", {"--rdzv-conf", "store_type=file"}), "--rdzv-endpoint PATH");
  says({"--standalone", "--nnodes", "2"}, "--standalone is one node");
  says(c10d("n1", {"--rdzv-id", std::string(1025, 'a')}), "a run id of 1025 characters");
}

TEST_CASE_FIXTURE(Fixture, "values that no run can use are usage errors with their text") {
  auto usage = [this](Strings words) {
    words.insert(words.begin(), "muster");
    words.emplace_back("x.py");
    Parsed parsed = parse(words, environment);
    auto* exit = std::get_if<EarlyExit>(&parsed);
    return exit == nullptr ? std::string() : exit->err;
  };
  for (const char* endpoint : {"n1:99999", "n1:x", "a b", "[::1", "[fe80::1%]:3", "%eth0:3",
                               "[n1%eth0]:3", "10.0.0.1.2:3", "::1:29500", "http://n1:3"}) {
    CAPTURE(endpoint);
    CHECK(has(usage(c10d(endpoint)), "--rdzv-endpoint '" + std::string(endpoint) + "'"));
  }
  for (const char* conf : {"join_timeout=1.5", "join_timeout=99999999999", "keep_alive_interval=0",
                           "keep_alive_interval=x", "keep_alive_max_attempt=0.5", "a", "rank"}) {
    CAPTURE(conf);
    CHECK(has(usage(c10d("n1", {"--rdzv-conf", conf})), conf));
  }
  CHECK(has(usage({"--rdzv-id", ""}), "give all nodes of a job the same one"));
  CHECK(has(usage({"--node-rank", "-1"}), "--node-rank '-1': must be at least 0"));
  CHECK(has(usage({"--on-node-signal", "go"}), "expected one of stop, leave"));
  CHECK(has(usage({"--grow-every", "-1"}), "expected a number of seconds"));
  CHECK(has(usage({"--exit-barrier-timeout", "1e30"}), "expected a number of seconds"));
}

TEST_CASE_FIXTURE(Fixture, "a meeting point that is every machine's own draws a warning") {
  CHECK(has_line(warned(c10d("localhost")), "localhost:29400: on other machines"));
  CHECK(has_line(warned(c10d("127.1.2.3:5")), "127.1.2.3:5"));
  CHECK(has_line(warned(c10d("[::1]")), "[::1]:29400"));
  CHECK(has_line(warned({"--nnodes", "2"}), "127.0.0.1:29500"));
  CHECK(warned(c10d("n1")).empty());
  CHECK(warned({"--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost"}).size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "what has no effect on several nodes is said") {
  CHECK(has_line(warned(c10d("n1", {"--master-addr", "a"})), "--master-addr has no effect"));
  CHECK(has_line(warned({"--nnodes", "2", "--rdzv-endpoint", "n1:1", "--master-port", "5"}),
                 "--master-port has no effect"));
  CHECK(has_line(warned({"--nnodes", "2", "--master-addr", "n1", "--grow-every", "5"}),
                 "--grow-every has no effect: the number of nodes is fixed"));
  CHECK(has_line(warned(c10d("n1", {"--rdzv-conf", "close_timeout=5"})),
                 "--rdzv-conf close_timeout has no effect"));
  CHECK(has_line(warned(c10d("n1", {"--rdzv-conf", "timeout=5"})), "join_timeout says it here"));
  CHECK(has_line(warned(c10d("n1", {"--rdzv-conf", "cacert=5"})), "it is etcd's"));
  CHECK(warned(c10d("n1", {"--ranks-filter", "0-31"})).empty());
  CHECK(has_line(warned({"--standalone", "--nnodes", "1:2"}), "--nnodes has no effect"));
  for (const char* option : {"--on-node-signal=leave", "--grow-every=3", "--exit-barrier-timeout=3",
                             "--store-allow", "--rdzv-conf=join_timeout=3"}) {
    CAPTURE(option);
    CHECK(has_line(warned({option}), "has no effect: one node need not meet others"));
  }
}

TEST_SUITE_END();

}  // namespace muster
