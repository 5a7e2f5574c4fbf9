// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/world.h>

#include <functional>
#include <optional>
#include <string>

namespace muster::comm::detail {

constexpr int kMaxWorldSize = 65536;

// What the environment and JoinOptions say of this process.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int attempt = 0;
  std::string run_id{};
};

// Where the ranks meet.
struct Venue {
  enum class Kind : uint8_t { kStore, kFile };
  Kind kind = Kind::kStore;
  std::string host{};
  int port = 0;
  bool hosted = false;  // rank 0 is the store, otherwise it is there already
  std::string path{};   // kFile

  // "the store at host:29500", "file:///shared/meeting": for messages.
  std::string to_string() const;
};

// A variable's value; nullopt where it is not set. An empty one counts as not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> environment(const char* name);

// Each error names the variable, option or part of init_method, what it is and what it may be.
Result<Place> read_place(const JoinOptions& options, const Variables& variables);
Result<Venue> read_venue(const JoinOptions& options, const Variables& variables);

}  // namespace muster::comm::detail
