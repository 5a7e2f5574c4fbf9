// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm.h>

#include <chrono>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "nccl/memory.h"

namespace muster::comm::test {

using std::chrono::milliseconds;

// How long operations of the drill may take; all that fails must have failed a second later.
constexpr milliseconds kShort{1500};
constexpr milliseconds kGrace{1000};
constexpr milliseconds kLong{60'000};  // for what is meant to succeed, or to be ended otherwise

// One process' part in a cell of the drill: what it does and what must come of it. Everything that
// is not as expected is printed, and the process then exits with 1.
class Drill {
 public:
  Drill(World& world, Backend backend) : world_(world), backend_(backend) {}

  World& world() { return world_; }
  Backend backend() const { return backend_; }
  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }
  bool is(int rank) const { return rank == world_.rank(); }

  // The world's communicator, with that timeout for each operation.
  Communicator all(milliseconds timeout = kShort, bool checked = false, std::string name = {});
  // `count` floats, each of them this rank + 1. They stay until the cell's communicators are gone:
  // the device waits for a broken operation before it frees memory.
  TestBuffer& floats(size_t count = 1024);

  // The call must fail with one of `codes`, at most kGrace after `by`. Its message must hold
  // `says`.
  using Call = std::function<Result<void>()>;
  void fails(const std::string& what, std::initializer_list<ErrorCode> codes, milliseconds by,
             const Call& call, const std::string& says = {});
  void succeeds(const std::string& what, const Call& call);
  void check(bool condition, const std::string& what);
  // An all_reduce of that communicator gives the right sum.
  void works(Communicator& communicator);

  // Meets the others through the store: a point in time in common.
  void meet(const std::string& place);
  // Dies or stops as soon as the others have entered what they wait in (as well as one can see).
  [[noreturn]] void die();
  [[noreturn]] void stop();

  bool good() const { return good_; }

 private:
  World& world_;
  Backend backend_;
  std::deque<TestBuffer> buffers_;
  bool good_ = true;
};

// What becomes of a rank in a cell.
enum class End { kExits, kKilled, kStopped };

struct Cell {
  const char* name;
  int ranks;
  void (*body)(Drill&);
  End end_of_last = End::kExits;  // of the last rank; all others must exit with 0
  const char* store = "";         // what the harness does to the store at "AT store": kill, stop
};

std::vector<Cell> abort_cells();
std::vector<Cell> destroy_cells();
std::vector<Cell> init_cells();
std::vector<Cell> peer_cells();
std::vector<Cell> group_cells();
std::vector<Cell> mismatch_cells();
std::vector<Cell> timeout_cells();
std::vector<Cell> store_cells();

}  // namespace muster::comm::test
