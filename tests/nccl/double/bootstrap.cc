// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.h"

#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "log.h"

namespace doubles {
namespace {

constexpr uint64_t kMagic = 0x646f75626c656964;

struct IdContent {
  uint64_t magic = kMagic;
  uint64_t nonce = 0;
  sockaddr_in address{};
};
static_assert(sizeof(IdContent) <= NCCL_UNIQUE_ID_BYTES);

struct CheckIn {
  uint64_t nonce = 0;
  int ranks = 0;
  int rank = 0;
  int roots = 1;
  int root = 0;  // which of them is asked
  PeerInfo info{};
};

// The ranks that root `root` of `roots` looks after: [first_of(root), first_of(root + 1)).
int first_of(int root, int roots, int ranks) {
  return static_cast<int>(1L * root * ranks / roots);
}

class Root {
 public:
  Root(uint64_t nonce, Fd listener) : nonce_(nonce), listener_(std::move(listener)) {}

  void run() {
    while (guests_.empty() || guests_.size() < static_cast<size_t>(ranks_)) {
      if (!receive_one()) return;
    }
    std::vector<Piece> pieces;
    for (const Fd& guest : guests_) {
      pieces.push_back(Piece::to(guest.get(), infos_.data(), infos_.size() * sizeof(PeerInfo)));
    }
    exchange(std::move(pieces), never_);
  }

 private:
  bool receive_one() {
    Fd guest;
    accept_from(listener_.get(), never_, &guest);
    CheckIn in;
    bool read = exchange({Piece::from(guest.get(), &in, sizeof in)}, never_) == Outcome::kDone;
    if (!read || in.nonce != nonce_) return true;  // a stranger
    if (guests_.empty()) begin(in);
    if (in.ranks != ranks_) {
      warn("Bootstrap Root : mismatch in rank count from procs %d : %d", ranks_, in.ranks);
      return false;
    }
    if (came_[static_cast<size_t>(in.rank)]) {
      warn("Bootstrap Root : rank %d of %d ranks has already checked in", in.rank, ranks_);
      return false;
    }
    came_[static_cast<size_t>(in.rank)] = true;
    if (in.rank >= first_ && in.rank < first_ + static_cast<int>(infos_.size())) {
      infos_[static_cast<size_t>(in.rank - first_)] = in.info;
    }
    guests_.push_back(std::move(guest));
    return true;
  }

  void begin(const CheckIn& in) {
    ranks_ = in.ranks;
    came_.resize(static_cast<size_t>(ranks_));
    first_ = first_of(in.root, in.roots, ranks_);
    infos_.resize(static_cast<size_t>(first_of(in.root + 1, in.roots, ranks_) - first_));
  }

  const uint64_t nonce_;
  Fd listener_;
  StopSignal never_;
  int ranks_ = 0;
  int first_ = 0;
  std::vector<bool> came_;
  std::vector<Fd> guests_;
  std::vector<PeerInfo> infos_;
};

bool read_id(const ncclUniqueId& id, IdContent* content) {
  std::memcpy(content, id.internal, sizeof *content);
  return content->magic == kMagic;
}

}  // namespace

ncclResult_t make_unique_id(ncclUniqueId* id) {
  std::optional<in_addr> host = interface_address();
  if (!host) {
    warn("Bootstrap : no socket interface found");
    return ncclInvalidUsage;
  }
  IdContent content;
  std::random_device random;
  content.nonce = (static_cast<uint64_t>(random()) << 32) | random();
  Fd listener = listen_at(*host, &content.address);
  if (!listener) {
    warn("Bootstrap : cannot listen");
    return ncclSystemError;
  }
  // Detached: ranks that never come keep it waiting for as long as the process lives, as NCCL's.
  auto root = std::make_shared<Root>(content.nonce, std::move(listener));
  std::thread([root] { root->run(); }).detach();
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &content, sizeof content);
  return ncclSuccess;
}

ncclResult_t gather_peers(std::span<const ncclUniqueId> ids, int rank, int ranks,
                          const PeerInfo& own, std::vector<PeerInfo>* all, const StopSignal& stop) {
  all->assign(static_cast<size_t>(ranks), PeerInfo{});
  int roots = static_cast<int>(ids.size());
  std::vector<Fd> fds(ids.size());
  std::vector<CheckIn> ins(ids.size());
  std::vector<Piece> pieces;
  for (int i = 0; i < roots; ++i) {
    auto at = static_cast<size_t>(i);
    IdContent content;
    if (!read_id(ids[at], &content)) {
      warn("Bootstrap : the unique id is not one of this library");
      return ncclInvalidArgument;
    }
    Outcome outcome = connect_to(content.address, stop, &fds[at]);
    if (outcome != Outcome::kDone) {
      return result_of(outcome, address_text(content.address).c_str());
    }
    ins[at] = {content.nonce, ranks, rank, roots, i, own};
    int first = first_of(i, roots, ranks);
    int end = first_of(i + 1, roots, ranks);
    pieces.push_back(Piece::to(fds[at].get(), &ins[at], sizeof(CheckIn)));
    pieces.push_back(Piece::from(fds[at].get(), all->data() + first,
                                 static_cast<size_t>(end - first) * sizeof(PeerInfo)));
  }
  return result_of(exchange(std::move(pieces), stop), "the bootstrap root");
}

ncclResult_t result_of(Outcome outcome, const char* where) {
  if (outcome == Outcome::kDone) return ncclSuccess;
  // NCCL says so of waits that an abort has ended.
  if (outcome == Outcome::kStopped) return ncclInternalError;
  warn("socketProgress: Connection closed by remote peer %s", where);
  return ncclRemoteError;
}

}  // namespace doubles
