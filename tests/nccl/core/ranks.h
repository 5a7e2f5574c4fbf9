// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <muster/comm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace muster::comm::detail {

// A port that nobody listens on.
inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

// Ranks that are threads of this process, each with a world of its own, over real sockets.
inline void ranks(int size, const std::function<void(World&)>& body) {
  const std::string place = "tcp://127.0.0.1:" + std::to_string(free_port());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        World world = World::join({.init_method = place, .rank = rank, .world_size = size}).value();
        body(world);
        world.leave().value();
      } catch (const std::exception& error) {
        FAIL_CHECK("rank " << rank << ": " << error.what());
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("in: " << text);
  return found;
}

}  // namespace muster::comm::detail
