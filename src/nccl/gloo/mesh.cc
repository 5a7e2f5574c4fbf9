// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/mesh.h"

#include <gloo/barrier.h>
#include <gloo/transport/tcp/address.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <numeric>

#include "nccl/gloo/alarm.h"
#include "nccl/gloo/loop_turns.h"
#include "nccl/join/roll_call.h"

namespace muster::comm::detail {
namespace {

using gloo::transport::tcp::Address;
using std::chrono::milliseconds;

// Gloo gives a connection five times a pair's timeout, and has no other limit for it.
constexpr int kConnectFactor = 5;

// A context around a transport that is there already.
class MeshContext final : public gloo::Context {
 public:
  MeshContext(std::shared_ptr<gloo::transport::Device> device,
              std::shared_ptr<gloo::transport::Context> transport)
      : gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
    // WatchedBuffer minds the deadlines.
    setTimeout(std::chrono::hours(1));
  }
};

// Gloo writes with writev(), from the caller's thread too. To block the signal there around each
// operation costs more than the whole rest of ours.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return;
  if (now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

// Gloo's thread must not take the program's signals: it is born with those blocked
// that do not come from its own faults.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

std::shared_ptr<gloo::transport::tcp::Device> make_device(const std::string& address) {
  gloo::transport::tcp::attr attr;
  attr.hostname = address;
  // As PyTorch has it; several names there would be several devices, of which we take the first.
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr)
    attr.iface = std::string(interface).substr(0, std::string(interface).find(','));
  const SignalsBlocked blocked;
  return std::static_pointer_cast<gloo::transport::tcp::Device>(
      gloo::transport::tcp::CreateDevice(attr));
}

sockaddr_storage socket_address(const gloo::transport::Pair& pair) {
  return Address(pair.address().bytes()).getSockaddr();
}

// Errors of a backend count ranks by the communicator, those of the roll call by the world.
Error by_communicator(Error error, const std::vector<int>& world_ranks) {
  std::vector<int> ranks;
  for (const int world : error.ranks) {
    const auto found = std::ranges::find(world_ranks, world);
    if (found != world_ranks.end()) ranks.push_back(static_cast<int>(found - world_ranks.begin()));
  }
  error.ranks = std::move(ranks);
  return error;
}

}  // namespace

Result<std::shared_ptr<Mesh>> Mesh::connect(const BackendPlan& plan, InitTimings& timings) {
  ignore_broken_pipes();
  std::shared_ptr<Mesh> mesh(new Mesh);
  const auto begin = std::chrono::steady_clock::now();
  try {
    mesh->make_pairs(plan);
  } catch (const std::exception& error) {
    return Error{
        ErrorCode::kSystem,
        "gloo: cannot listen at '" + plan.local_address +
            "' (set GLOO_SOCKET_IFNAME to choose another interface): " + gloo_words(error)};
  }
  const auto listening = std::chrono::steady_clock::now();
  std::vector<sockaddr_storage> peers;
  if (auto met = mesh->meet(plan, peers); !met) {
    return by_communicator(met.error(), plan.world_ranks);
  }
  const auto met = std::chrono::steady_clock::now();
  if (auto connected = mesh->connect_pairs(plan, peers); !connected) return connected.error();
  if (auto all = mesh->wait_for_all(plan.deadline); !all) return all.error();
  const auto end = std::chrono::steady_clock::now();
  timings.store = std::chrono::round<Duration>(met - listening);
  timings.library = std::chrono::round<Duration>(end - met + (listening - begin));
  return mesh;
}

Mesh::~Mesh() {
  close();
  kept_.clear();
  context_.reset();
  transport_.reset();
  connected_.reset();
  device_.reset();
}

void Mesh::make_pairs(const BackendPlan& plan) {
  device_ = make_device(plan.local_address);
  turns_ = std::make_unique<LoopTurns>();
  connected_ = device_->createContext(plan.rank, plan.size);
  const auto idle = device_->createContext(plan.rank, plan.size);
  idle->setTimeout(std::chrono::hours(1));
  const auto left = std::min<milliseconds>(time_left(plan.deadline), std::chrono::hours(100));
  connected_->setTimeout(std::max(left / kConnectFactor, milliseconds(1)));
  transport_ = std::make_shared<WatchedContext>(connected_, idle, plan.world_ranks);
  context_ = std::make_shared<MeshContext>(device_, transport_);
  for (int peer = 0; peer < plan.size; ++peer) {
    if (peer != plan.rank) connected_->createPair(peer);
  }
}

ListenAddresses Mesh::listening() {
  ListenAddresses addresses;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) {
      addresses.ports.push_back(0);
      continue;
    }
    addresses.host = socket_address(*connected_->getPair(peer));
    addresses.ports.push_back(std::exchange(port_of(addresses.host), 0));
  }
  return addresses;
}

Result<void> Mesh::meet(const BackendPlan& plan, std::vector<sockaddr_storage>& peers) {
  RollCall call(*plan.store, "gloo", plan.world_ranks, plan.rank, "gloo: exchanging addresses");
  if (auto answered = call.answer(listening().encode()); !answered) return answered;
  std::string all;
  if (plan.rank == 0) {
    auto answers = call.collect(plan.deadline);
    if (!answers) return answers.error();
    all = std::accumulate(answers->begin(), answers->end(), std::string());
    if (auto published = call.publish(all); !published) return published;
  } else {
    auto result = call.result(plan.deadline);
    if (!result) return result.error();
    all = std::move(*result);
  }
  std::string_view bytes = all;
  const auto ranks = static_cast<size_t>(size());
  for (size_t peer = 0; peer < ranks; ++peer) {
    const auto addresses = ListenAddresses::decode(bytes, ranks);
    if (!addresses) {
      return Error{ErrorCode::kMismatch, "gloo: the addresses in the store are not of this group"};
    }
    peers.push_back(addresses->for_rank(static_cast<size_t>(rank())));
  }
  return {};
}

// First the connections that begin here: they need only that the others listen, which they do. So
// whoever is waited for afterwards has itself not come so far.
Result<void> Mesh::connect_pairs(const BackendPlan& plan,
                                 const std::vector<sockaddr_storage>& peers) {
  std::vector<int> order;
  for (const bool first : {true, false}) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const sockaddr_storage self = socket_address(*connected_->getPair(peer));
      if (connects(self, peers[static_cast<size_t>(peer)]) == first) order.push_back(peer);
    }
  }
  // Gloo counts the time for each connection anew; closing them ends its waits.
  std::atomic<bool> late = false;
  const Alarm alarm(plan.deadline, [&] {
    late = true;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) connected_->getPair(peer)->close();
    }
  });
  for (const int peer : order) {
    std::string failure;
    try {
      connected_->getPair(peer)->connect(Address(peers[static_cast<size_t>(peer)]).bytes());
    } catch (const std::exception& error) {
      failure = gloo_words(error);
    }
    const std::string who = transport_->names({peer});
    if (late || time_left(plan.deadline).count() == 0) {
      return Error{ErrorCode::kTimeout, "gloo: no connection with " + who, {peer}};
    }
    if (!failure.empty()) {
      return Error{ErrorCode::kPeerLost, "gloo: connecting to " + who + ": " + failure, {peer}};
    }
  }
  return {};
}

// Else one could do its work with some ranks and close while others are still connecting to it.
Result<void> Mesh::wait_for_all(Deadline deadline) {
  transport_->set_deadline(deadline);
  try {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  } catch (GlooFailure& caught) {
    caught.error.message = "gloo: waiting until all are connected: " + caught.error.message;
    return std::move(caught.error);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kSystem, "gloo: " + gloo_words(error)};
  }
  return {};
}

void Mesh::keep(std::shared_ptr<void> thing) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(thing));
}

// The library's thread may be about to call a pair when that is freed: a pair waits for a turn of
// the loop, but by a condition variable without a condition. So they are only closed here, and
// freed when the loop has certainly been round since.
//
// There is no call to close them all after what was sent (Gloo's closeConnections() resets the
// connections, and what was sent may be lost). But a wait that runs out does it.
void Mesh::close() {
  std::call_once(closed_, [this] {
    if (!connected_) return;
    transport_->stop();
    turns_->begin(*device_);
    try {
      char byte = 0;
      connected_->createUnboundBuffer(&byte, 1)->waitRecv(milliseconds(0));
    } catch (const std::exception&) {  // as it must
    }
    turns_->wait(2);
  });
}

}  // namespace muster::comm::detail
