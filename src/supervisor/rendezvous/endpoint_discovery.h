// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/resolve.h"
#include "loop/timer.h"
#include "supervisor/cli/rendezvous_plan.h"
#include "supervisor/rendezvous/discovery.h"

namespace muster {

// Opens the store at an address and a port, as the supervisor wants it.
using ListenAt =
    std::function<Result<std::unique_ptr<StoreServer>>(const std::string& address, int port)>;

// A fixed endpoint (c10d, static). The node hosts it that is told to; where nobody is told, the one
// that the endpoint's address leads to and that manages to listen there. Names are resolved anew
// each time, by everybody but a node that is told to host, and never compared; there is no look-up
// of a name by address. Owned by the Rendezvous.
class EndpointDiscovery final : public Discovery {
 public:
  EndpointDiscovery(Loop& loop, const RendezvousPlan& plan, ListenAt listen, Callbacks callbacks);

  void find() override;
  bool can_replace_coordinator() const override { return false; }

 private:
  using Addresses = std::vector<SocketAddress>;

  void resolve_host();
  void resolved(const Result<Addresses>& result);
  void try_again(const std::string& why);
  void host_as_told();
  void host_if_possible(const Addresses& addresses);
  void found_here(std::unique_ptr<StoreServer> store);
  void found_there(const Addresses& addresses);
  void failed(const Error& error);
  std::string endpoint() const;

  Loop& loop_;
  const std::string host_;
  const int port_;
  const std::optional<bool> told_;  // whether we host
  const ListenAt listen_;
  const Callbacks callbacks_;
  Owned<Lookup> lookup_;
  Owned<Timer> timer_;
  Milliseconds backoff_{0};
  std::string step_;  // told last
};

// Where to listen so that peers reach us at `host`: at the literal itself, on loopback for
// "localhost", everywhere for any other name.
std::string listen_address_for(const std::string& host);

}  // namespace muster
