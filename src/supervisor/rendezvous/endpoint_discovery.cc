// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/endpoint_discovery.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "loop/interfaces.h"

namespace muster {

namespace {

// Names may appear late (a pod's, a node's that boots).
constexpr Milliseconds kFirstRetry{50};
constexpr Milliseconds kLastRetry{1'000};

constexpr const char* kEverywhere = "::";  // IPv4 too, and without IPv6 IPv4 alone

std::optional<bool> told_to_host(const RendezvousPlan& plan) {
  if (plan.is_host) return plan.is_host;
  if (plan.meeting == Meeting::kStatic && plan.node_rank) return *plan.node_rank == 0;
  return std::nullopt;
}

bool is_literal(const std::string& host) {
  return SocketAddress::parse(host, 0).has_value();
}

}  // namespace

std::string listen_address_for(const std::string& host) {
  if (is_literal(host)) return host;
  return host == "localhost" ? "127.0.0.1" : kEverywhere;
}

EndpointDiscovery::EndpointDiscovery(Loop& loop, const RendezvousPlan& plan, ListenAt listen,
                                     Callbacks callbacks)
    : loop_(loop),
      host_(plan.endpoint_host),
      port_(plan.endpoint_port),
      told_(told_to_host(plan)),
      listen_(std::move(listen)),
      callbacks_(std::move(callbacks)) {}

std::string EndpointDiscovery::endpoint() const {
  const bool bare_v6 = host_.find(':') != std::string::npos;
  return (bare_v6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(port_);
}

void EndpointDiscovery::find() {
  backoff_ = kFirstRetry;
  lookup_.reset();
  if (told_.value_or(false)) {
    timer_ = Timer::start(loop_, Milliseconds(0), [this] { host_as_told(); });
  } else {
    timer_.reset();
    resolve_host();
  }
}

void EndpointDiscovery::resolve_host() {
  lookup_ =
      resolve(loop_, host_, [this](const Result<Addresses>& addresses) { resolved(addresses); });
}

void EndpointDiscovery::resolved(const Result<Addresses>& result) {
  if (!result) return try_again(result.error().message);
  const Addresses ours = local_addresses();
  // Those of this machine first, if there are any: then the host is here as well.
  Addresses addresses = *result;
  const auto others =
      std::stable_partition(addresses.begin(), addresses.end(),
                            [&](const SocketAddress& address) { return is_local(address, ours); });
  const bool leads_here = others != addresses.begin();
  if (leads_here && !told_) return host_if_possible(addresses);
  found_there(addresses);
}

void EndpointDiscovery::try_again(const std::string& why) {
  timer_ = Timer::start(loop_, backoff_, [this] { resolve_host(); });
  backoff_ = std::min(backoff_ * 2, kLastRetry);
  if (why == step_) return;
  step_ = why;
  const auto on_step = callbacks_.on_step;
  on_step(std::string(why));
}

// Needs no name server. An address that is not ours may still lead here, behind a translation of
// addresses or a service's virtual address.
void EndpointDiscovery::host_as_told() {
  const std::string address = listen_address_for(host_);
  auto store = listen_(address, port_);
  const bool elsewhere = !store && store.error().code == EADDRNOTAVAIL;
  if (elsewhere && !SocketAddress::parse(address, 0)->is_loopback())
    store = listen_(kEverywhere, port_);
  if (store) return found_here(std::move(*store));
  Error error = store.error();
  error.message = "this node is to host " + endpoint() + ", but ";
  error.message += error.code == EADDRINUSE
                       ? "the port is in use here: is another job or program at it?"
                       : "it cannot listen there";
  error.message += " (" + store.error().message + ")";
  failed(error);
}

void EndpointDiscovery::host_if_possible(const Addresses& addresses) {
  std::string address = listen_address_for(host_);
  if (host_ == "localhost" && std::ranges::none_of(addresses, [&](const SocketAddress& one) {
        return one.host() == address;
      }))
    address = addresses.front().host();
  auto store = listen_(address, port_);
  if (store) return found_here(std::move(*store));
  // Somebody on this machine was faster; whoever it is, the endpoint leads to them.
  if (store.error().code == EADDRINUSE) return found_there(addresses);
  if (store.error().code == EADDRNOTAVAIL) return try_again(store.error().message);
  Error error = store.error();
  error.message = endpoint() + " leads to this node, but it cannot listen there (" +
                  store.error().message + ")";
  failed(error);
}

void EndpointDiscovery::found_here(std::unique_ptr<StoreServer> store) {
  store->hold_strangers();  // for whoever takes the store
  Found found;
  found.port = store->port();
  found.store = std::move(store);
  found.host = host_;
  step_.clear();
  const auto on_found = callbacks_.on_found;
  on_found(std::move(found));
}

void EndpointDiscovery::found_there(const Addresses& addresses) {
  Found found;
  found.port = port_;
  found.host = host_;
  for (const SocketAddress& address : addresses)
    found.addresses.push_back(address.host());
  step_.clear();
  const auto on_found = callbacks_.on_found;
  on_found(std::move(found));
}

void EndpointDiscovery::failed(const Error& error) {
  const auto on_failed = callbacks_.on_failed;
  on_failed(Error(error));
}

}  // namespace muster
