// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/crowd.h"

#include <signal.h>

#include <type_traits>
#include <utility>

#include "loop/check.h"
#include "supervisor/rendezvous/auth.h"

namespace muster {

namespace {

constexpr size_t kReadBuffer = size_t{64} << 10;
constexpr Milliseconds kConnectTimeout{20'000};
constexpr Milliseconds kRetry{50};
constexpr Milliseconds kTick{10};
constexpr Milliseconds kHeartbeat{1'000};
constexpr int kFirstPid = 1'000'000;  // above those that exist

int64_t unix_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

// One node's end of its control connection. Owned by the crowd.
class Crowd::Agent {
 public:
  Agent(Crowd& crowd, int number) : crowd_(crowd) {
    facts_.id = new_nonce();
    facts_.host = "node-" + std::to_string(number);
    facts_.pid = kFirstPid + number;
    facts_.workers = 1;
    facts_.endpoint_host = crowd.settings_.coordinator.host();
    facts_.log_dir = "/logs/" + crowd.settings_.run_id;
    facts_.started_by = "bench";
    facts_.terms.min_nodes = facts_.terms.max_nodes = crowd.settings_.nodes + 1;
    facts_.terms.max_restarts = crowd.settings_.max_restarts;
  }

  void connect();
  void fail();
  void beat();
  void measure();

 private:
  void connected(UniqueFd socket);
  void received(std::string_view bytes);
  void on_message(HostMessage& message, size_t bytes);
  void prove(const message::Challenge& challenge);
  void assigned(const Assignment& assignment);
  void stop(const StopOrder& order);
  void settle(NodeOutcome outcome, int wait_status);
  event::FailureFound failure() const;
  void say(AgentMessage message);

  Crowd& crowd_;
  NodeFacts facts_;
  std::string nonce_;
  Owned<TcpConnector> connector_;
  Owned<Timer> retry_;
  Owned<TcpStream> stream_;
  FrameReader frames_{kMaxFrame};
  Assignment assignment_;
  bool welcome_ = false;
  bool parted_ = false;
};

void Crowd::Agent::connect() {
  connector_ = TcpConnector::connect(
      crowd_.loop_, crowd_.settings_.coordinator, kConnectTimeout, [this](Result<UniqueFd> socket) {
        if (socket) return connected(std::move(*socket));
        ++crowd_.round_.reconnects;
        retry_ = Timer::start(crowd_.loop_, kRetry, [this] { connect(); });
      });
}

void Crowd::Agent::connected(UniqueFd socket) {
  connector_.reset();
  auto stream =
      TcpStream::adopt(crowd_.loop_, std::move(socket), {crowd_.read_buffer_.get(), kReadBuffer},
                       {[this](std::string_view bytes) { received(bytes); },
                        [this](int) {
                          stream_.reset();
                          if (!parted_) {
                            crowd_.on_trouble_(facts_.host + ": its connection was closed");
                          }
                        },
                        [] {}});
  MUST(stream);
  stream_ = std::move(*stream);
  nonce_ = new_nonce();
  stream_->write(kControlPreamble);
  say(message::Hello{kControlVersion, crowd_.settings_.run_id, nonce_,
                     !crowd_.settings_.token.empty()});
}

void Crowd::Agent::received(std::string_view bytes) {
  frames_.feed(bytes);
  Frame frame;
  while (frames_.next(&frame) == FrameReader::Answer::kFrame) {
    Result<HostMessage> message = decode_host_message(frame);
    if (!message) return crowd_.on_trouble_(facts_.host + ": " + message.error().message);
    on_message(*message, frame.body.size() + 5);
  }
}

void Crowd::Agent::on_message(HostMessage& message, size_t bytes) {
  if (!std::holds_alternative<message::HeartbeatEcho>(message) &&
      !std::holds_alternative<event::NodesAwaited>(message)) {
    crowd_.round_.traffic.messages_down += 1;
    crowd_.round_.traffic.bytes_down += static_cast<double>(bytes);
  }
  std::visit(
      [this](auto& m) {
        using T = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<T, message::Challenge>) {
          prove(m);
        } else if constexpr (std::is_same_v<T, message::Welcome>) {
          welcome_ = true;
          beat();
        } else if constexpr (std::is_same_v<T, message::HeartbeatEcho>) {
          crowd_.round_.round_trips_us.push_back(unix_us() - m.sent_us);
        } else if constexpr (std::is_same_v<T, Assignment>) {
          assigned(m);
        } else if constexpr (std::is_same_v<T, StopOrder>) {
          stop(m);
        } else if constexpr (std::is_same_v<T, JobEnd>) {
          parted_ = true;
          say(message::Goodbye{});
          crowd_.one_done();
        } else if constexpr (std::is_same_v<T, message::Refuse>) {
          crowd_.on_trouble_(facts_.host + " was refused: " + m.reason);
        }
      },
      message);
}

void Crowd::Agent::prove(const message::Challenge& challenge) {
  const Exchange exchange{crowd_.settings_.run_id, nonce_, challenge.nonce};
  if (!is_proof(challenge.proof, crowd_.settings_.token, Prover::kHost, exchange))
    return crowd_.on_trouble_(facts_.host + ": the coordinator has another token");
  say(message::Join{facts_, make_proof(crowd_.settings_.token, Prover::kAgent, exchange), 0});
}

void Crowd::Agent::assigned(const Assignment& assignment) {
  MUST(assignment.node_count == crowd_.settings_.nodes + 1);
  assignment_ = assignment;
  const event::WorkerSpawned spawned{assignment.attempt, assignment.first_rank, 0, facts_.pid};
  say(message::Events{assignment.attempt, {spawned}});
  crowd_.one_done();
}

event::FailureFound Crowd::Agent::failure() const {
  event::FailureFound failure;
  failure.attempt = assignment_.attempt;
  failure.rank = assignment_.first_rank;
  failure.host = facts_.host;
  failure.node = assignment_.node;
  failure.pid = facts_.pid;
  failure.kind = "exit_code";
  failure.exit_code = 1;
  failure.message = "exited with 1";
  failure.time_us = unix_us();
  return failure;
}

// Nobody orders it to stop: it has no worker left.
void Crowd::Agent::fail() {
  const int attempt = assignment_.attempt;
  say(FailureNotice{attempt, failure()});
  NodeOutcome outcome;
  outcome.attempt = attempt;
  outcome.root = failure();
  settle(std::move(outcome), 1 << 8);
}

// Its worker ends at once.
void Crowd::Agent::stop(const StopOrder& order) {
  crowd_.round_.stops_us.push_back(now_us() - crowd_.began_us_);
  const int rank = assignment_.first_rank;
  const event::SignalSent sent{order.attempt, rank, facts_.pid, order.signal, true, order.reason};
  say(message::Events{order.attempt, {sent}});
  NodeOutcome outcome;
  outcome.attempt = order.attempt;
  outcome.victims = {{std::to_string(rank), "stopped by muster"}};
  settle(std::move(outcome), order.signal);
}

void Crowd::Agent::settle(NodeOutcome outcome, int wait_status) {
  event::WorkerExited exited;
  exited.attempt = outcome.attempt;
  exited.rank = assignment_.first_rank;
  exited.pid = facts_.pid;
  exited.wait_status = wait_status;
  exited.max_rss_kib = 1024;
  say(message::Events{outcome.attempt, {exited}});
  say(std::move(outcome));
}

void Crowd::Agent::beat() {
  if (stream_ && welcome_ && !parted_) say(message::Heartbeat{unix_us(), 0});
}

// As if it had eight workers.
void Crowd::Agent::measure() {
  if (!stream_ || !welcome_ || parted_) return;
  RankSample sample;
  sample.rank = assignment_.first_rank;
  sample.time_us = unix_us();
  sample.cpu = 7.9;
  sample.rss_bytes = int64_t{12} << 30;
  sample.last_output_us = sample.time_us - 300'000;
  sample.gpu = 0.97;
  sample.gpu_memory_bytes = int64_t{70} << 30;
  sample.step = 812;
  sample.steps = 10'000;
  sample.steps_per_s = 3.25;
  sample.loss = 2.5;
  say(message::Samples{assignment_.attempt, std::vector<RankSample>(8, sample)});
}

void Crowd::Agent::say(AgentMessage message) {
  const bool counts = !std::holds_alternative<message::Heartbeat>(message);
  const std::string frame = encode(std::move(message));
  if (counts) {
    crowd_.round_.traffic.messages_up += 1;
    crowd_.round_.traffic.bytes_up += static_cast<double>(frame.size());
  }
  MUST(stream_);
  stream_->write(frame);
}

Crowd::Crowd(Loop& loop, Settings settings, OnTrouble on_trouble)
    : loop_(loop),
      settings_(std::move(settings)),
      on_trouble_(std::move(on_trouble)),
      read_buffer_(std::make_unique_for_overwrite<char[]>(kReadBuffer)) {
  for (int i = 0; i < settings_.nodes; ++i)
    agents_.push_back(std::make_unique<Agent>(*this, i + 1));
  heart_ = Timer::repeat(loop_, kTick, [this] { beat(); });
}

Crowd::~Crowd() = default;

void Crowd::begin(Kind kind, OnDone on_done) {
  kind_ = kind;
  round_ = {};
  on_done_ = std::move(on_done);
  done_ = 0;
  began_us_ = now_us();
  if (kind == Kind::kForm) {
    for (auto& agent : agents_)
      agent->connect();
  } else if (kind == Kind::kFail) {
    last_to_fail_ = (last_to_fail_ + agents_.size() / 2 + 1) % agents_.size();
    agents_[last_to_fail_]->fail();
  }
}

void Crowd::one_done() {
  if (++done_ < agents_.size()) return;
  round_.us = now_us() - began_us_;
  Traffic& traffic = round_.traffic;
  for (double* count :
       {&traffic.messages_up, &traffic.bytes_up, &traffic.messages_down, &traffic.bytes_down})
    *count /= static_cast<double>(agents_.size());
  on_done_(round_);
}

void Crowd::beat() {
  const size_t share = agents_.size() * kTick.count() / kHeartbeat.count() + 1;
  for (size_t i = 0; i < share; ++i) {
    agents_[next_beat_]->beat();
    next_beat_ = (next_beat_ + 1) % agents_.size();
  }
  if (sample_interval_.count() > 0) measure();
}

void Crowd::measure() {
  samples_due_ += static_cast<double>(agents_.size()) * static_cast<double>(kTick.count()) /
                  static_cast<double>(sample_interval_.count());
  for (; samples_due_ >= 1; samples_due_ -= 1) {
    agents_[next_to_measure_]->measure();
    next_to_measure_ = (next_to_measure_ + 1) % agents_.size();
  }
}

std::string Crowd::progress() const {
  return std::to_string(done_) + " of " + std::to_string(agents_.size()) + " nodes are there; " +
         std::to_string(round_.stops_us.size()) + " were told to stop";
}

}  // namespace muster
