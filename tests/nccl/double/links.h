// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "wire.h"

namespace doubles {

// What each rank tells the others when a communicator is made.
struct PeerInfo {
  sockaddr_in address{};  // where it listens for this communicator
  uint64_t host = 0;
  int bus = 0;  // the GPU's PCI bus
  int version = 0;
  int color = 0;  // of a split
  int key = 0;
  ncclUniqueId grown{};  // of a communicator that grows: the id of the one to be made
};

enum class Channel : int { kCollectives = 1, kPointToPoint = 2, kMeeting = 3 };

// One communicator's sockets to its other ranks. They are made when they are first needed, and then
// both sides must want them (as NCCL, which connects in the first launch): who needs a peer that
// never comes waits for ever, or until it is told to stop.
class Links {
 public:
  Links(int rank, Fd listener) : rank_(rank), listener_(std::move(listener)) {}
  void set_peers(std::vector<PeerInfo> peers) { peers_ = std::move(peers); }
  const std::vector<PeerInfo>& peers() const { return peers_; }

  // Opens the channel to these ranks, where it is not open.
  Outcome open(Channel channel, std::vector<int> ranks, const StopSignal& stop);
  // The socket of an open channel.
  int fd(Channel channel, int rank) const;

  // All `members` (this rank among them) come together and learn what each has said, by their place
  // among the members. The `turn` tells one meeting of this communicator from another.
  Outcome meet(const std::vector<int>& members, int turn, const PeerInfo& own,
               std::vector<PeerInfo>* all, const StopSignal& stop);

 private:
  struct Hello {
    int channel = 0;
    int turn = 0;
    int rank = 0;
  };
  Outcome call(int rank, Channel channel, int turn, const StopSignal& stop, Fd* out);
  Outcome await(int rank, Channel channel, int turn, const StopSignal& stop, Fd* out);

  int rank_;
  Fd listener_;
  std::vector<PeerInfo> peers_;
  std::map<std::tuple<int, int, int>, Fd>
      waiting_;               // channel, turn, rank: came before it was wanted
  mutable std::mutex mutex_;  // for open_
  std::map<std::pair<Channel, int>, Fd> open_;
};

}  // namespace doubles
