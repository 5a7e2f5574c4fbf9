// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

// The page of shared memory in which a worker says how it goes and the launcher reads, also after
// the worker's death. This file is the layout and nothing else: no calls, no allocation.
//
// The launcher makes a memfd for each worker and names it in MUSTER_WORKER_PAGE
// ("/proc/<supervisor>/fd/<n>"), so that any process on the worker's side can open it, through
// wrappers and shells, and nothing is left behind on disk. Exactly one process writes: the first
// that takes `owner`. Its bytes come from a program that may be broken, so the reader copies it out
// and believes nothing (worker_page_reader.h).
//
// Times are CLOCK_MONOTONIC nanoseconds, which all processes of a host share. Every field that both
// sides touch is a lock-free atomic; blocks of several fields that belong together have a version
// beside them that is odd while they are written (a seqlock).
namespace muster::worker_page {

constexpr uint64_t kMagic = 0x31656761'7074736dULL;  // "mstpage1"
constexpr uint32_t kVersion = 1;

constexpr int kMaxCommunicators = 32;  // of one process; more have no ring
constexpr int kRingSize = 64;          // operations kept for each
constexpr int kMaxMembers = 1024;      // listed by world rank; a larger group only by its size
constexpr int kMaxName = 64;           // with the final 0
constexpr int kMaxValues = 16;
constexpr int kValueName = 32;  // with the final 0

template <typename T>
using Shared = std::atomic<T>;
static_assert(Shared<uint64_t>::is_always_lock_free && Shared<double>::is_always_lock_free);

struct NamedValue {
  char name[kValueName];
  Shared<double> value;
};

struct ProgressBlock {
  Shared<uint64_t> version;      // odd: being written
  Shared<int64_t> step;          // negative: never reported
  Shared<int64_t> total;         // negative: not known
  Shared<double> loss;           // NaN: not known
  Shared<int64_t> reported_ns;   // when `step` was reported last
  Shared<int64_t> heartbeat_ns;  // last report or heartbeat
  Shared<uint32_t> values;       // used of `named`
  uint32_t reserved;
  NamedValue named[kMaxValues];
};

enum class OpState : uint8_t { kNone = 0, kRunning = 1, kDone = 2, kFailed = 3 };

// One operation. `version` is odd while the entry is being given to another operation.
struct RingEntry {
  Shared<uint64_t> version;
  Shared<uint64_t> sequence;  // 1, 2, ...: collectives and point to point are counted apart
  Shared<uint64_t> count;     // elements: what this rank puts in, or takes out where it puts none
  Shared<int64_t> start_ns;
  Shared<int64_t> end_ns;  // 0: not ended
  Shared<int32_t> root_or_peer;
  Shared<int32_t> tag;
  Shared<uint8_t> kind;    // OpKind
  Shared<uint8_t> type;    // DataType
  Shared<uint8_t> reduce;  // ReduceOp
  Shared<uint8_t> state;   // OpState
  uint32_t reserved;
};

struct CommunicatorBlock {
  Shared<uint64_t> version;  // odd: being given to another communicator
  Shared<uint32_t> used;     // 1: open or ended, its ring is good to read
  Shared<uint32_t> closed;   // 1: closed or aborted in order
  Shared<uint64_t> id;       // the same on all members, of no other communicator of the attempt
  Shared<int32_t> rank;
  Shared<int32_t> size;
  Shared<uint8_t> backend;
  char name[kMaxName];
  Shared<uint32_t> members;             // used of `member`; 0: not listed
  Shared<int32_t> member[kMaxMembers];  // world ranks, by rank
  Shared<uint64_t> entries;             // ever written; entry i is in ring[i % kRingSize]
  Shared<uint64_t> collectives;         // sequence of the last collective that was entered
  Shared<uint64_t> messages;            // of the last send or receive
  RingEntry ring[kRingSize];
};

struct Page {
  Shared<uint64_t> magic;  // written last by the owner: the rest is good to read then
  Shared<uint32_t> layout;
  Shared<int32_t> owner;  // the pid as the owner sees it; 0: nobody yet
  Shared<int32_t> rank;   // of the world
  Shared<int32_t> world_size;
  ProgressBlock progress;
  std::array<CommunicatorBlock, kMaxCommunicators> communicators;
};

constexpr const char* kVariable = "MUSTER_WORKER_PAGE";

}  // namespace muster::worker_page
