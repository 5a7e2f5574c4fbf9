// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

// Stands for the coordinator: notes what the job tells it. Its orders are given by the test.
struct FakeLink final : JobLink {
  bool joined = false, left = false, reachable = true;
  std::vector<FailureNotice> notices;
  std::vector<NodeOutcome> early, outcomes;
  std::vector<std::pair<int, bool>> stop_requests;  // signal, kill
  std::vector<std::string> restart_requests;        // by whom

  void join() override { joined = true; }
  void failed(const FailureNotice& notice) override { notices.push_back(notice); }
  void ending(const NodeOutcome& so_far) override { early.push_back(so_far); }
  void settled(const NodeOutcome& outcome) override { outcomes.push_back(outcome); }
  void report(const Event&) override {}
  bool request_stop(const event::SignalReceived& signal, bool kill) override {
    if (reachable) stop_requests.emplace_back(signal.signal, kill);
    return reachable;
  }
  std::string request_restart(const std::string& who) override {
    restart_requests.push_back(who);
    return reachable ? "" : "there is no coordinator to ask now";
  }
  std::string request_evidence(const std::string&) override { return ""; }
  void leave() override { left = true; }
  void close(std::function<void()> on_closed) override { on_closed(); }
};

// A node of several whose workers are shell scripts: the second of two nodes, global ranks from 3.
struct JobTest : LoopTest {
  TempDir dir;
  LaunchPlan plan;
  Recorder recorder;
  FakeLink link;
  UniqueFd input{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  UniqueFd console{open((dir.path + "/console").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  std::unique_ptr<JobLogs> logs;
  std::unique_ptr<Job> job;
  std::optional<int> code;

  explicit JobTest(std::vector<std::string> scripts = {}) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    plan.options.log_dir = dir.path;
    plan.run_id = "run";
    plan.host = "node-b";
    plan.rendezvous.max_nodes = 2;
    event::JobStarted started;
    started.host = plan.host;
    started.max_nodes = 2;
    recorder.record(started);
    if (!scripts.empty()) begin(std::move(scripts));
  }

  void begin(std::vector<std::string> scripts) {
    for (const std::string& script : scripts) {
      WorkerPlan worker;
      worker.local_rank = static_cast<int>(plan.workers.size());
      worker.executable = "/bin/sh";
      worker.argv = {"sh", "-c", script};
      plan.workers.push_back(worker);
    }
    JobLogs::Callbacks callbacks;
    callbacks.on_first_output = [this](int rank, Stream s) { job->on_first_output(rank, s); };
    callbacks.on_closed = [this](int rank) { job->on_closed(rank); };
    callbacks.on_drained = [this](int rank) { job->on_drained(rank); };
    callbacks.on_trouble = [](const std::string&) {};
    int fd = console.get();
    auto opened = JobLogs::open(loop, plan, callbacks, JobLogs::Consoles{input.get(), fd, fd});
    REQUIRE(opened);
    logs = std::move(*opened);
    job = std::make_unique<Job>(Job::Parts{loop, plan, recorder, *logs, link, {}, 1024},
                                [this](int exit_code) { code = exit_code; });
    job->start();
  }

  void assign(int attempt = 0, int restart_count = 0) {
    Assignment assignment;
    assignment.attempt = attempt;
    assignment.restart_count = restart_count;
    assignment.node = 1;
    assignment.node_count = 2;
    assignment.first_rank = 3;
    assignment.world_size = 3 + static_cast<int>(plan.workers.size());
    assignment.master_addr = "node-a";
    assignment.master_port = 29400;
    job->on_assignment(assignment);
  }

  // The workers' own first line, so that a signal cannot come before their trap is set.
  void wait_until_all_wrote() {
    REQUIRE(run_until([this] {
      const auto& ranks = recorder.state().current()->ranks;
      return std::all_of(ranks.begin(), ranks.end(),
                         [](const RankState& r) { return r.wrote_stdout; });
    }));
  }
  const NodeOutcome& outcome() {
    size_t before = seen_++;
    REQUIRE(run_until([&] { return link.outcomes.size() > before; }));
    return link.outcomes.back();
  }
  std::string log(int local_rank) { return read_file(logs->log_file(local_rank, Stream::kStdout)); }
  event::SignalReceived signal(int number) {
    event::SignalReceived received;
    received.signal = number;
    return received;
  }

 private:
  size_t seen_ = 0;
};

constexpr char kWaits[] = "echo here; exec sleep 60";

}  // namespace

TEST_CASE_FIXTURE(JobTest, "a job waits for an assignment and takes its ranks from it") {
  begin({"echo $RANK of $WORLD_SIZE on $GROUP_RANK at $MASTER_ADDR:$MASTER_PORT", "exit 0"});
  CHECK(link.joined);
  CHECK(recorder.state().attempts.empty());
  assign(4, 2);
  const NodeOutcome& told = outcome();
  CHECK(told.complete);
  CHECK(told.attempt == 4);
  CHECK_FALSE(told.root);
  CHECK(log(0) == "3 of 5 on 1 at node-a:29400\n");
  CHECK(recorder.state().current()->find(4)->local_rank == 1);
  CHECK_FALSE(code);  // the end is not its to decide
  job->on_job_end(JobEnd{Outcome::kSucceeded, 0, ""});
  CHECK(code == 0);
}

// Writes what a worker of our library does that has lost a peer.
constexpr char kLosesPeer[] =
    "echo '{\"message\": {\"message\": \"E: peer\", "
    "\"extraInfo\": {\"comm_error\": \"peer_lost\"}}}' > $TORCHELASTIC_ERROR_FILE; exit 1";

TEST_CASE_FIXTURE(JobTest, "a victim's end stops nobody until the culprit has had time to die") {
  begin({kLosesPeer, "sleep 0.2; exit 7", kWaits});
  assign();
  const NodeOutcome& told = outcome();
  REQUIRE(told.root);
  CHECK(told.root->rank == 3);
  REQUIRE(told.others.size() == 1);
  CHECK(told.others[0].rank == 4);
  CHECK(told.others[0].exit_code == 7);
  REQUIRE(link.notices.size() == 1);
  CHECK_MESSAGE(link.notices[0].preliminary.rank == 4, "the others are told of the culprit");
}

TEST_CASE_FIXTURE(JobTest, "the time to die is bounded, and ends with an order to stop") {
  begin({kLosesPeer, kWaits});
  assign();
  SUBCASE("bounded") {}
  SUBCASE("ordered") {
    const auto& ranks = recorder.state().current()->ranks;
    REQUIRE(run_until([&] { return ranks[0].phase == RankPhase::kExited; }));
    job->on_stop({0, SIGTERM, StopReason::kFailure, false, "rank 0 on node-a failed"});
  }
  const NodeOutcome& told = outcome();
  REQUIRE(told.root);
  CHECK(told.root->rank == 3);
  CHECK(told.others.empty());
  REQUIRE(link.notices.size() == 1);
  CHECK(link.notices[0].preliminary.rank == 3);
  REQUIRE(told.suspects.size() == 1);
  CHECK(told.suspects[0].rank == 4);
}

TEST_CASE_FIXTURE(JobTest, "where all are dead a node still waits for a culprit elsewhere") {
  begin({kLosesPeer});
  assign();
  const auto before = Clock::now();
  outcome();
  CHECK(Clock::now() - before >= kCulpritPatience);
}

TEST_CASE_FIXTURE(JobTest, "a failure of its own waits for nobody") {
  begin({"sleep 0.3; exit 5", "sleep 5; exit 7", "exit 0"});
  assign();
  const NodeOutcome& told = outcome();
  CHECK(told.root->exit_code == 5);
  CHECK(told.others.empty());
  CHECK(told.finished == "5");
}

TEST_CASE_FIXTURE(JobTest, "a failure is told at once, its evidence follows with the outcome") {
  begin({"echo Boom >&2; exit 5", kWaits});
  assign();
  REQUIRE(run_until([&] { return !link.notices.empty(); }));
  const event::FailureFound& first = link.notices[0].preliminary;
  CHECK(link.notices.size() == 1);
  CHECK(first.rank == 3);
  CHECK(first.host == "node-b");
  CHECK(first.node == 1);
  CHECK(first.exit_code == 5);
  CHECK(link.outcomes.empty());
  const NodeOutcome& told = outcome();
  CHECK_FALSE(told.complete);
  REQUIRE(told.root);
  CHECK(told.root->excerpt == std::vector<std::string>{"Boom"});
  CHECK(told.root->stderr_log == logs->log_file(0, Stream::kStderr));
  CHECK(told.root->ran_us >= 0);
  REQUIRE(told.victims.size() == 1);
  CHECK(told.victims[0].ranks == "4");
  job->on_job_end(JobEnd{Outcome::kFailed, 5, ""});
  CHECK(code == 5);
}

TEST_CASE_FIXTURE(JobTest, "of a stop that takes long the failure is told before its end") {
  const std::string ready = dir.path + "/ready";
  plan.options.shutdown_timeout = std::chrono::seconds(1);
  begin({"until [ -e " + ready + " ]; do sleep 0.01; done; echo Boom >&2; exit 5",
         "trap '' TERM; : > " + ready + "; exec sleep 60"});
  assign();
  REQUIRE(run_until([&] { return !link.early.empty(); }));
  CHECK(link.outcomes.empty());
  const NodeOutcome so_far = link.early[0];
  CHECK(so_far.early);
  REQUIRE(so_far.root);
  CHECK(so_far.root->rank == 3);
  CHECK(so_far.root->excerpt == std::vector<std::string>{"Boom"});
  REQUIRE(so_far.suspects.size() == 1);
  CHECK(so_far.suspects[0].rank == 4);

  AttemptVerdict verdict;
  verdict.root = so_far.root;
  verdict.early = true;
  job->on_verdict(verdict);
  const AttemptState& attempt = *recorder.state().current();
  REQUIRE(attempt.root_cause);
  CHECK(attempt.root_cause->rank == 3);
  CHECK(attempt.ranks[1].phase == RankPhase::kRunning);
  CHECK_FALSE(outcome().early);
  CHECK(link.early.size() == 1);
  CHECK(link.outcomes[0].root->rank == 3);
  verdict.early = false;
  verdict.others = {*so_far.root};
  verdict.others[0].rank = 0;
  job->on_verdict(verdict);
  CHECK_MESSAGE(attempt.root_cause->rank == 3, "it stays");
  REQUIRE(attempt.other_causes.size() == 1);
  CHECK(attempt.other_causes[0].rank == 0);
}

TEST_CASE_FIXTURE(JobTest, "of a stop for another reason than a failure nothing is told early") {
  plan.options.shutdown_timeout = std::chrono::seconds(1);
  begin({"trap '' TERM; echo here; exec sleep 60"});
  assign();
  wait_until_all_wrote();
  job->on_stop({0, SIGTERM, StopReason::kMembership, false, "node-c joined"});
  outcome();
  CHECK(link.early.empty());
}

TEST_CASE_FIXTURE(JobTest, "an order stops the workers, and the node can be assigned again") {
  begin({kWaits});
  assign(0);
  wait_until_all_wrote();
  job->on_stop(StopOrder{7, SIGTERM, StopReason::kMembership, false, "another attempt's"});
  job->on_stop(StopOrder{0, SIGTERM, StopReason::kMembership, false, "node-c was lost"});
  CHECK_FALSE(outcome().complete);
  CHECK(link.notices.empty());
  CHECK_FALSE(link.outcomes[0].root);
  assign(1);
  CHECK(recorder.state().attempts.size() == 2);
  wait_until_all_wrote();
  job->on_stop(StopOrder{1, SIGTERM, StopReason::kFailure, true, "rank 0 failed"});
  outcome();
  CHECK(recorder.state().current()->ranks[0].wait_status == SIGKILL);
  job->on_job_end(JobEnd{Outcome::kFailed, 9, ""});
  CHECK(code == 9);
}

TEST_CASE_FIXTURE(JobTest, "what the flight recorder left is named with the failure") {
  begin({"echo > $TORCH_NCCL_DEBUG_INFO_TEMP_FILE$RANK; exit 1"});
  assign();
  const NodeOutcome& told = outcome();
  REQUIRE(told.root);
  const std::string path = logs->run_dir() + "/attempt_0/0/flight_recorder_3";
  const std::vector<std::string>& lines = told.root->evidence;
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.find(path) != std::string::npos; }));
}

TEST_CASE_FIXTURE(JobTest,
                  "of an order that names ranks that hang, this node's are aborted first") {
  begin({kWaits, kWaits, kWaits});
  assign();
  wait_until_all_wrote();
  StopOrder order{0, SIGTERM, StopReason::kFailure, false, "the job hangs"};
  order.hung = "0-1, 4";  // this node has 3 to 5
  job->on_stop(order);
  outcome();
  const AttemptState& attempt = *recorder.state().current();
  CHECK(attempt.find(3)->stop_signal == SIGTERM);
  CHECK(attempt.find(4)->stop_signal == SIGABRT);
  CHECK(attempt.find(5)->stop_signal == SIGTERM);
  CHECK(log(1) == "here\n");
}

TEST_CASE_FIXTURE(JobTest, "a signal stops our workers at once and is passed on") {
  begin({"trap 'exit 0' TERM; echo here; while :; do sleep 0.01; done"});
  assign();
  wait_until_all_wrote();
  job->on_signal(signal(SIGTERM));
  CHECK(link.stop_requests == std::vector<std::pair<int, bool>>{{SIGTERM, false}});
  job->on_stop(StopOrder{0, SIGTERM, StopReason::kSignal, false, "SIGTERM on node-b"});
  CHECK_FALSE(outcome().complete);  // it ended with 0, but not by itself
  CHECK(recorder.state().stop_signal->host == "node-b");
  job->on_job_end(JobEnd{Outcome::kStopped, 143, ""});
  CHECK(code == 143);
}

TEST_CASE_FIXTURE(JobTest, "a second interrupt asks for the kill of all") {
  begin({"trap '' INT; echo here; while :; do sleep 0.01; done"});
  assign();
  wait_until_all_wrote();
  job->on_signal(signal(SIGINT));
  job->on_signal(signal(SIGINT));
  CHECK(link.stop_requests == std::vector<std::pair<int, bool>>{{SIGINT, false}, {SIGINT, true}});
  outcome();
  CHECK(recorder.state().current()->ranks[0].wait_status == SIGKILL);
}

TEST_CASE_FIXTURE(JobTest, "without a coordinator a signal ends the node by itself") {
  link.reachable = false;
  SUBCASE("before any worker runs") {
    begin({kWaits});
    job->on_signal(signal(SIGTERM));
    CHECK(code == 143);
  }
  SUBCASE("with workers") {
    begin({kWaits});
    assign();
    wait_until_all_wrote();
    job->on_signal(signal(SIGTERM));
    REQUIRE(run_until([&] { return code.has_value(); }));
    CHECK(code == 143);
    CHECK(link.outcomes.empty());
  }
}

TEST_CASE_FIXTURE(JobTest, "a node that is to leave stops its own workers only") {
  plan.rendezvous.on_node_signal = OnNodeSignal::kLeave;
  begin({kWaits});
  assign();
  wait_until_all_wrote();
  job->on_signal(signal(SIGTERM));
  CHECK(link.left);
  CHECK(link.stop_requests.empty());
  REQUIRE(run_until([&] { return code.has_value(); }));
  CHECK(code == 143);
}

TEST_CASE_FIXTURE(JobTest,
                  "a request to stop means the whole job, also at a node that leaves on signals") {
  plan.rendezvous.on_node_signal = OnNodeSignal::kLeave;
  begin({"trap '' TERM; echo here; while :; do sleep 0.01; done"});
  assign();
  wait_until_all_wrote();
  CHECK(job->request_stop("127.0.0.1 over HTTP", false).empty());
  CHECK(job->request_stop("127.0.0.1 over HTTP", true).empty());
  CHECK_FALSE(link.left);
  CHECK(link.stop_requests == std::vector<std::pair<int, bool>>{{SIGTERM, false}, {SIGTERM, true}});
  outcome();
  CHECK(recorder.state().current()->ranks[0].wait_status == SIGKILL);
  CHECK(describe_signal(*recorder.state().stop_signal) ==
        "SIGTERM on node-b from 127.0.0.1 over HTTP");
  job->on_job_end(JobEnd{Outcome::kStopped, 143, ""});
  CHECK_FALSE(job->request_stop("127.0.0.1 over HTTP", false).empty());
}

TEST_CASE_FIXTURE(JobTest, "a request to restart goes to the coordinator, who alone decides") {
  CHECK(job == nullptr);
  begin({kWaits});
  assign();
  wait_until_all_wrote();
  CHECK(job->request_restart("alice").empty());
  CHECK(link.restart_requests == std::vector<std::string>{"alice"});
  CHECK(recorder.state().current()->ranks[0].phase == RankPhase::kRunning);
  link.reachable = false;
  CHECK(job->request_restart("alice") == "there is no coordinator to ask now");
  job->on_stop(
      StopOrder{0, SIGTERM, StopReason::kRestart, false, "restarting: asked for by alice"});
  CHECK_FALSE(outcome().complete);
  CHECK(recorder.state().current()->ranks[0].stopped_for == StopReason::kRestart);
  CHECK(recorder.state().current()->restart_asked_by == "restarting: asked for by alice");
  job->on_job_end(JobEnd{Outcome::kStopped, 143, ""});
  CHECK(job->request_restart("alice") == "the job has ended");
}

TEST_CASE_FIXTURE(JobTest, "a lost front kills the workers and asks nobody") {
  begin({"trap '' TERM; echo here; while :; do sleep 0.01; done"});
  assign();
  wait_until_all_wrote();
  job->on_front_lost();
  REQUIRE(run_until([&] { return code.has_value(); }));
  CHECK(code == 137);
  CHECK(link.outcomes.empty());
}

TEST_CASE_FIXTURE(JobTest, "an end that comes too early waits for the workers to be gone") {
  begin({kWaits});
  assign();
  wait_until_all_wrote();
  job->on_job_end(JobEnd{Outcome::kFailed, 1, "confused"});
  CHECK_FALSE(code);
  REQUIRE(run_until([&] { return code.has_value(); }));
  CHECK(code == 1);
  CHECK(recorder.state().current()->ranks[0].stopped_for == StopReason::kCoordinatorLost);
}

TEST_CASE_FIXTURE(JobTest, "an assignment under running workers changes nothing") {
  begin({kWaits});
  assign(0);
  wait_until_all_wrote();
  assign(1);
  CHECK(recorder.state().attempts.size() == 1);
  REQUIRE(recorder.state().troubles.size() == 1);
  job->on_stop(StopOrder{0, SIGTERM, StopReason::kMembership, false, ""});
  outcome();
}

TEST_CASE_FIXTURE(JobTest, "a program that is not there is told as a failure") {
  begin({"exit 0"});
  plan.workers[0].executable = "/nonexistent";
  assign();
  const NodeOutcome& told = outcome();
  REQUIRE(told.root);
  CHECK(told.root->kind == "exec_not_found");
  REQUIRE(link.notices.size() == 1);
  CHECK(link.notices[0].preliminary.kind == "exec_not_found");
}

TEST_CASE_FIXTURE(JobTest, "an attempt whose folder cannot be made is told as trouble") {
  begin({"exit 0"});
  assign(0);
  outcome();
  assign(0);  // attempt_0 is there already
  const NodeOutcome& told = outcome();
  CHECK_FALSE(told.complete);
  CHECK(told.trouble.find("attempt_0") != std::string::npos);
}

TEST_CASE_FIXTURE(JobTest, "the verdict of another node is recorded as it came") {
  begin({kWaits});
  assign();
  wait_until_all_wrote();
  job->on_stop(StopOrder{0, SIGTERM, StopReason::kFailure, false, "rank 0 on node-a failed"});
  outcome();
  AttemptVerdict verdict;
  verdict.attempt = 0;
  verdict.root.emplace();
  verdict.root->rank = 0;
  verdict.root->host = "node-a";
  verdict.root->pid = 4;
  verdict.root->message = "exited with code 3";
  verdict.victims = {{"1-3", "stopped by muster"}};
  verdict.restarts = true;
  verdict.restart_count = 1;
  job->on_verdict(verdict);
  const JobState& state = recorder.state();
  CHECK(state.current()->root_cause->host == "node-a");
  CHECK(state.current()->victims.size() == 1);
  CHECK(state.restarts_used == 1);
  CHECK(job->root_error_file().empty());
  job->on_job_end(JobEnd{Outcome::kFailed, 3, ""});
  std::vector<std::string> report = final_report(state, nullptr);
  CHECK(report[0].find("rank 0 (local 0) on node-a failed") != std::string::npos);
}

}  // namespace muster
