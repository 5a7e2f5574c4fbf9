// SPDX-License-Identifier: Apache-2.0
// One rank as a program: joins where its arguments say, then does what the lines of its standard
// input say, each with one line as the answer: "ok ...", or "error CODE [RANKS] MESSAGE". Ends when
// its input does; unless it has left by then, without leaving.
//
//   member INIT_METHOD TIMEOUT_MS [RANK WORLD_SIZE]

#include <muster/comm.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "nccl/join/world_impl.h"

namespace {

using namespace muster::comm;

void answer(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void answer_error(const Error& error) {
  std::string ranks;
  for (int rank : error.ranks)
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
  answer("error " + std::string(to_string(error.code)) + " [" + ranks + "] " + error.message);
}

void answer_result(const Result<void>& result) {
  if (result)
    answer("ok");
  else
    answer_error(result.error());
}

template <typename T>
void answer_value(const Result<T>& result) {
  if (!result) return answer_error(result.error());
  std::ostringstream text;
  text << *result;
  answer("ok " + text.str());
}

void make_communicator(World& world, std::istringstream& words) {
  std::string backend;
  CommunicatorOptions options;
  int64_t timeout_ms = 0;
  words >> backend >> timeout_ms >> options.name;
  options.timeout = Duration(timeout_ms);
  Result<Communicator> communicator =
      world.communicator(backend == "nccl" ? Backend::kNccl : Backend::kGloo, options);
  if (!communicator) return answer_error(communicator.error());
  int64_t sum = world.rank();
  const Result<void> reduced = communicator->all_reduce(std::span(&sum, 1)).wait();
  if (!reduced) return answer_error(reduced.error());
  answer("ok " + std::to_string(sum));
}

void obey(World& world, const std::string& line) {
  std::istringstream words(line);
  std::string word, key, value;
  int64_t number = 0;
  words >> word;
  if (word == "set") {
    words >> key >> value;
    answer_result(world.set(key, value));
  } else if (word == "get") {
    words >> key >> number;
    answer_value(world.get(key, Duration(number)));
  } else if (word == "add") {
    words >> key >> number;
    answer_value(world.add(key, number));
  } else if (word == "erase") {
    words >> key;
    answer_value(world.erase(key));
  } else if (word == "barrier") {
    words >> key >> number;
    answer_result(world.barrier(key, Duration(number)));
  } else if (word == "leave") {
    words >> number;
    answer_result(world.leave(Duration(number)));
  } else if (word == "address") {
    answer("ok " + world.impl().local_address());
  } else if (word == "comm") {
    make_communicator(world, words);
  } else if (word == "setenv") {
    words >> key >> value;
    setenv(key.c_str(), value.c_str(), 1);
    answer("ok");
  } else {
    answer("error what? " + line);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  JoinOptions options;
  options.init_method = argv[1];
  options.timeout = Duration(std::atoll(argv[2]));
  if (argc > 4) {
    options.rank = std::atoi(argv[3]);
    options.world_size = std::atoi(argv[4]);
  }
  std::optional<World> world;
  {
    Result<World> joined = World::join(options);
    if (!joined) {
      answer_error(joined.error());
      return 1;
    }
    world = *joined;
  }
  answer("ok " + std::to_string(world->rank()) + "/" + std::to_string(world->size()));
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "drop") {
      world.reset();
      answer("ok");
    } else {
      obey(*world, line);
    }
  }
  _exit(0);
}
