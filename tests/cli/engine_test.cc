// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/engine.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"
#include "supervisor/cli/rendezvous_planner.h"

namespace muster {

TEST_SUITE_BEGIN("engines");

namespace {

struct Fixture : PlanFixture {
  Environment plain = environment;

  void set(const std::string& name, const std::string& value) {
    set_variable(environment, name, value);
  }

  // What slurmd gives to the task of one node of a step, as Slurm 22.05 and 23.11 do.
  void slurm(int node, int nodes = 4, int tasks = 4, const std::string& list = "n[1-4]") {
    environment = plain;
    machine.host = "n" + std::to_string(node + 1);
    set("SLURM_JOB_ID", "123");
    set("SLURM_STEP_ID", "0");
    set("SLURM_STEP_NODELIST", list);
    set("SLURM_STEP_NUM_NODES", std::to_string(nodes));
    set("SLURM_STEP_NUM_TASKS", std::to_string(tasks));
    set("SLURM_NODEID", std::to_string(node));
    set("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9");
    set("SLURMD_NODENAME", machine.host);
  }

  // What Open MPI 4.1 gives; mpirun runs where rank 0 does.
  void open_mpi(int rank, int size = 3, int local_size = 1) {
    environment = plain;
    set("OMPI_COMM_WORLD_SIZE", std::to_string(size));
    set("OMPI_COMM_WORLD_RANK", std::to_string(rank));
    set("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size));
    set("PMIX_NAMESPACE", "1891041281");
    const std::string head = "1891041280.0;tcp://10.0.0.1,172.17.0.1:59195;tcp6://[fd00::2]:40241";
    set("OMPI_MCA_orte_hnp_uri", head);
    set("OMPI_MCA_orte_local_daemon_uri", rank == 0 ? head : "1891041280.1;tcp://10.0.0.2:35001");
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a step of Slurm's is a job of its nodes without any option") {
  for (int node = 0; node < 4; ++node) {
    slurm(node);
    LaunchPlan made = plan({"x.py"});
    const RendezvousPlan& meet = made.rendezvous;
    CHECK(meet.meeting == Meeting::kDynamic);
    CHECK(meet.min_nodes == 4);
    CHECK(meet.max_nodes == 4);
    CHECK(meet.node_rank == node);
    CHECK(meet.is_host == (node == 0));
    CHECK(meeting_point(meet) == "n1:12123");
    CHECK(made.run_id == "slurm-123.0");
    CHECK(has_line(made.notes, "Slurm job 123.0: 4 nodes, this is node " + std::to_string(node) +
                                   ", meeting at n1:12123"));
    CHECK(made.warnings.empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "steps, jobs and requeues never meet each other") {
  slurm(0);
  set("SLURM_STEP_ID", "1");
  CHECK(plan({"x.py"}).rendezvous.endpoint_port != 12123);
  set("SLURM_STEP_ID", "0");
  set("SLURM_RESTART_COUNT", "2");
  CHECK(plan({"x.py"}).run_id == "slurm-123.0-restart-2");
  set("SLURM_JOB_ID", "67108863");
  set("SLURM_STEP_ID", "4000");
  const int port = plan({"x.py"}).rendezvous.endpoint_port;
  CHECK(port >= kFirstEnginePort);
  CHECK(port < kFirstEnginePort + kEnginePorts);
}

TEST_CASE_FIXTURE(Fixture, "Slurm's address is used where it gives one that all nodes can use") {
  slurm(2);
  set("SLURM_NODE_ALIASES", "n1:10.3.0.7:vm7,n2:10.3.0.8:vm8");
  CHECK(meeting_point(plan({"x.py"}).rendezvous) == "10.3.0.7:12123");
  set("SLURM_NODE_ALIASES", "n1:[fd00::7]:vm7");
  CHECK(meeting_point(plan({"x.py"}).rendezvous) == "[fd00::7]:12123");
  set("SLURM_NODE_ALIASES", "(null)");
  CHECK(meeting_point(plan({"x.py"}).rendezvous) == "n1:12123");
  // A node that calls itself 127.0.1.1 in /etc/hosts is still reached by its name.
  set("SLURM_LAUNCH_NODE_IPADDR", "127.0.1.1");
  CHECK(meeting_point(plan({"x.py"}).rendezvous) == "n1:12123");
  // Several slurmd on one machine: the names are Slurm's alone.
  machine.host = "box.example.org";
  CHECK(meeting_point(plan({"x.py"}).rendezvous) == "127.0.1.1:12123");
}

TEST_CASE_FIXTURE(Fixture, "what was given wins over Slurm") {
  slurm(3);
  auto point = [this](Strings words) {
    words.emplace_back("x.py");
    return meeting_point(plan(words).rendezvous);
  };
  CHECK(!plan({"--standalone", "x.py"}).rendezvous.several_nodes());
  CHECK(!plan({"--nnodes", "1", "x.py"}).rendezvous.several_nodes());
  CHECK(plan({"--nnodes", "2:4", "x.py"}).rendezvous.min_nodes == 2);
  CHECK(point({"--nnodes", "2:4"}) == "n1:12123");
  CHECK(!plan({"--nnodes", "2", "x.py"}).rendezvous.node_rank);  // a spare, perhaps
  CHECK(point({"--rdzv-backend", "c10d"}) == "n1:12123");
  CHECK(point({"--master-port", "7"}) == "n1:7");
  CHECK(plan({"--master-port", "7", "x.py"}).rendezvous.meeting == Meeting::kStatic);
  CHECK(plan({"--rdzv-id", "mine", "x.py"}).run_id == "mine");
  CHECK(plan({"--rdzv-conf", "is_host=1", "x.py"}).rendezvous.is_host == true);
  // With the place given only the number of nodes and the rank are open.
  LaunchPlan made = plan({"--rdzv-backend", "c10d", "--rdzv-endpoint", "other:5", "x.py"});
  CHECK(meeting_point(made.rendezvous) == "other:5");
  CHECK(made.rendezvous.max_nodes == 4);
  CHECK(made.rendezvous.node_rank == 3);
  CHECK(!made.rendezvous.is_host);
  // As torchrun is started in a job script: nothing is left to fill in.
  made = plan({"--nnodes", "4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "n1:29500", "x.py"});
  CHECK(made.run_id == "none");
  CHECK(!made.rendezvous.node_rank);
  CHECK(made.notes.empty());
  made = plan({"--nnodes", "4", "--rdzv-backend", "etcd-v3", "--rdzv-endpoint", "e", "x.py"});
  CHECK(made.rendezvous.meeting == Meeting::kEtcdV3);
}

TEST_CASE_FIXTURE(Fixture, "outside of a step of several nodes Slurm changes nothing") {
  auto one_node = [this] { return !plan({"x.py"}).rendezvous.several_nodes(); };
  set("SLURM_JOB_ID", "123");
  set("SLURM_JOB_NUM_NODES", "4");
  set("SLURM_NODEID", "0");
  CHECK(one_node());  // the batch script
  slurm(0);
  set("SLURM_STEP_ID", "4294967290");  // salloc's shell
  CHECK(one_node());
  slurm(0, 1, 1, "n1");
  CHECK(one_node());
  CHECK(plan({"x.py"}).warnings.empty());
  slurm(0);
  set("TORCHELASTIC_RUN_ID", "outer");  // a worker's child
  CHECK(one_node());
}

TEST_CASE_FIXTURE(Fixture, "several tasks a node are an error that says what to write") {
  slurm(0, 4, 8);
  Error refused = error({"x.py"});
  CHECK(refused.code == 2);
  CHECK(has(refused.message, "Slurm job 123.0 has 8 tasks on 4 nodes"));
  CHECK(has(refused.message, "--ntasks-per-node=1"));
  CHECK(!plan({"--nnodes", "1", "x.py"}).rendezvous.several_nodes());
  slurm(0, 1, 8, "n1");
  CHECK(has_line(plan({"x.py"}).warnings, "starts muster 8 times on this node: each is a job"));
}

TEST_CASE_FIXTURE(Fixture, "a node list that makes no sense is named") {
  slurm(0, 4, 4, "n[1-4");
  CHECK(has(error({"x.py"}).message, "SLURM_STEP_NODELIST=n[1-4: a bracket is not closed"));
  slurm(0, 4, 4, "n[1-3]");
  CHECK(has(error({"x.py"}).message, "has 3 hosts; SLURM_STEP_NUM_NODES=4"));
  slurm(4);
  CHECK(has(error({"x.py"}).message, "SLURM_NODEID=4"));
}

TEST_CASE_FIXTURE(Fixture, "mpirun with one start a node is a job of its ranks") {
  open_mpi(0);
  LaunchPlan first = plan({"x.py"});
  open_mpi(2);
  LaunchPlan third = plan({"x.py"});
  CHECK(first.rendezvous.max_nodes == 3);
  CHECK(first.rendezvous.is_host == true);
  CHECK(third.rendezvous.is_host == false);
  CHECK(third.rendezvous.node_rank == 2);
  CHECK(third.rendezvous.endpoint_host == "10.0.0.1");
  CHECK(third.rendezvous.endpoint_port == first.rendezvous.endpoint_port);
  CHECK(third.run_id == "mpi-1891041281");
  CHECK(has_line(third.notes, "Open MPI job 1891041281: 3 nodes, this is node 2, meeting at 10.0"));
}

TEST_CASE_FIXTURE(Fixture, "an mpirun that does not say where rank 0 is needs an endpoint") {
  open_mpi(0);
  set("OMPI_MCA_orte_local_daemon_uri", "1891041280.1;tcp://10.0.0.2:35001");
  CHECK(has(error({"x.py"}).message, "rank 0 is not on mpirun's machine"));
  CHECK(has(error({"x.py"}).message, "give --rdzv-endpoint HOST:PORT"));
  set("OMPI_MCA_orte_hnp_uri", "nonsense");
  CHECK(has(error({"x.py"}).message, "this mpirun does not say where rank 0 is"));
  LaunchPlan made = plan({"--rdzv-endpoint", "h:5", "x.py"});
  CHECK(made.rendezvous.meeting == Meeting::kDynamic);
  CHECK(made.rendezvous.max_nodes == 3);
  CHECK(made.rendezvous.node_rank == 0);
  CHECK(meeting_point(made.rendezvous) == "h:5");
}

TEST_CASE_FIXTURE(Fixture, "mpirun's other starts: several a node, one machine, none") {
  open_mpi(0, 4, 2);
  CHECK(has(error({"x.py"}).message, "starts muster 2 times on this node"));
  CHECK(has(error({"x.py"}).message, "--map-by ppr:1:node"));
  open_mpi(0, 2, 2);
  CHECK(has_line(plan({"x.py"}).warnings, "each is a job of its own"));
  CHECK(!plan({"x.py"}).rendezvous.several_nodes());
  open_mpi(0, 1, 1);
  CHECK(plan({"x.py"}).warnings.empty());
  // mpirun's daemons are a step of Slurm's, whose variables are then not about us.
  open_mpi(1);
  Environment mpi = environment;
  slurm(0, 2, 2, "n[2-3]");
  for (const std::string& line : mpi) {
    const size_t equals = line.find('=');
    set(line.substr(0, equals), line.substr(equals + 1));
  }
  CHECK(plan({"x.py"}).rendezvous.max_nodes == 3);
}

TEST_CASE_FIXTURE(Fixture, "MPICH and Intel MPI give ranks, the endpoint is the user's") {
  set("PMI_SIZE", "2");
  set("PMI_RANK", "1");
  CHECK(!plan({"x.py"}).rendezvous.several_nodes());  // who else sets them is not known
  set("MPI_LOCALNRANKS", "1");
  CHECK(has(error({"x.py"}).message, "this mpiexec does not say where rank 0 is"));
  LaunchPlan made = plan({"--rdzv-endpoint", "h:5", "x.py"});
  CHECK(made.rendezvous.max_nodes == 2);
  CHECK(made.rendezvous.node_rank == 1);
}

TEST_CASE_FIXTURE(Fixture, "a pod of an indexed Job knows its rank, not more") {
  set("JOB_COMPLETION_INDEX", "2");
  CHECK(!plan({"x.py"}).rendezvous.several_nodes());
  Strings line = {"--nnodes",  "4",   "--rdzv-backend", "c10d", "--rdzv-endpoint",
                  "job-0.net", "x.py"};
  CHECK(plan(line).rendezvous.node_rank == 2);
  CHECK(has_line(plan(line).notes, "this is node 2 of 4 (JOB_COMPLETION_INDEX)"));
  set("PET_NODE_RANK", "1");
  CHECK(plan(line).rendezvous.node_rank == 1);
  environment.pop_back();
  set("JOB_COMPLETION_INDEX", "9");
  CHECK(!plan(line).rendezvous.node_rank);
}

TEST_CASE_FIXTURE(Fixture, "the variables of a training operator are the defaults of options") {
  // As the PyTorchJob controller sets them for an elastic job.
  environment.insert(
      environment.end(),
      {"PET_NNODES=1:3", "PET_RDZV_BACKEND=c10d", "PET_RDZV_ENDPOINT=train-worker-0:23456",
       "PET_RDZV_ID=train", "PET_NPROC_PER_NODE=2", "PET_MAX_RESTARTS=5",
       "MASTER_ADDR=train-worker-0", "RANK=1", "WORLD_SIZE=3"});
  LaunchPlan made = plan({"x.py"});
  CHECK(meeting_point(made.rendezvous) == "train-worker-0:23456");
  CHECK(made.rendezvous.max_nodes == 3);
  CHECK(!made.rendezvous.node_rank);
  CHECK(made.run_id == "train");
  CHECK(made.workers.size() == 2);
  // And as it and the Trainer do for a fixed set.
  environment = plain;
  environment.insert(environment.end(),
                     {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=auto",
                      "PET_MASTER_ADDR=train-node-0-0.train", "PET_MASTER_PORT=29400"});
  made = plan({"x.py"});
  CHECK(made.rendezvous.meeting == Meeting::kStatic);
  CHECK(meeting_point(made.rendezvous) == "train-node-0-0.train:29400");
  CHECK(made.rendezvous.is_host == false);
}

TEST_SUITE_END();

}  // namespace muster
