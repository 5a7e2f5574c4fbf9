// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/table.h"

namespace muster {

using Clock = std::chrono::steady_clock;
using ClientId = uint64_t;  // of a connection; never used twice
inline constexpr ClientId kNobody = 0;

// One connection that waits, as the outside sees it.
struct Waiter {
  ClientId client = 0;
  Clock::time_point since;
  bool barrier = false;
  std::vector<std::string> keys;  // what it still waits for
};

// Who waits for which key. Waking a key costs the number of its waiters, leaving costs the number
// of the leaver's keys; neither depends on how many others wait.
class Waits {
 public:
  // A client waits for all of `keys` (a key listed twice counts twice). What it waited for before
  // is forgotten. `keys` is not empty.
  void wait(ClientId client, const std::vector<std::string_view>& keys, bool barrier,
            Clock::time_point now);

  // Forgets a client. Returns whether it waited.
  bool cancel(ClientId client);

  // The key is there: adds to `woken` every client that has now nothing left to wait for.
  void wake_all(std::string_view key, std::vector<ClientId>& woken);

  // One item came for the key: as wake_all, but stops at the first client that wakes.
  void wake_one(std::string_view key, std::vector<ClientId>& woken);

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  // What a client waits for: "/k", "/k and 3 more", "" if it does not wait.
  std::string words(ClientId client) const;
  void for_each(const std::function<void(const Waiter&)>& visit) const;
  void clear();

 private:
  struct Registration {
    ClientId client;
    size_t index;  // its place in the client's list
  };
  using Queue = std::list<Registration>;
  using Queues = TextMap<Queue>;
  struct Place {
    Queues::value_type* queue;  // nodes of the map stay where they are
    Queue::iterator at;
  };
  struct Waiting {
    Clock::time_point since;
    bool barrier = false;
    std::vector<Place> places;  // one for each key that is still missing
  };

  bool wake_first(Queues::iterator queue, std::vector<ClientId>& woken);

  Queues queues_;  // never holds an empty queue
  std::unordered_map<ClientId, Waiting> waiting_;
};

}  // namespace muster
