// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "loop/socket_address.h"
#include "loop/unique_fd.h"
#include "skip.h"

// For what runs inside OwnMachine::run: says what is not as it should be and ends it.
#define NEED(expression)                                                                    \
  do {                                                                                      \
    if (expression) break;                                                                  \
    std::fprintf(stderr, "%s:%d: NEED( %s ) is not so\n", __FILE__, __LINE__, #expression); \
    return false;                                                                           \
  } while (false)

namespace muster {

// A child process that is as good as a machine of its own: its network has nothing but loopback,
// its hosts file is what the test writes, and its name server, which the test may play, is at
// 127.0.0.1.
class OwnMachine {
 public:
  // Runs `test` there in a child; it is to return true. Says so where this machine does not allow
  // it.
  static void run(const std::function<bool(OwnMachine&)>& test) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(40);
      OwnMachine machine;
      if (!machine.enter()) _exit(kNotAllowed);
      // No destructor of the test's: a loop would wait for its name server.
      _exit(test(machine) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNotAllowed) {
      say_skipped("namespaces of its own are not allowed here: names and addresses");
      return;
    }
    CHECK(WEXITSTATUS(status) == 0);
  }

  void set_hosts(const std::string& lines) const { std::ofstream("/etc/hosts") << lines; }

  // One more address, of loopback's interface but no loopback address.
  bool add_address(const std::string& address) const {
    ifreq request{};
    std::strcpy(request.ifr_name, "lo:1");
    auto at = SocketAddress::parse(address, 0);
    std::memcpy(&request.ifr_addr, at->raw(), at->size());
    return ioctl(control_.get(), SIOCSIFADDR, &request) == 0;
  }

  bool disable_ipv6() const {
    std::ofstream file("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    return static_cast<bool>(file << "1" << std::flush) || access("/proc/net/if_inet6", F_OK) != 0;
  }

 private:
  static constexpr int kNotAllowed = 77;

  bool enter() {
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (!replace("/etc/hosts", "")) return false;
    if (!replace("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n"))
      return false;
    control_.reset(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    return ioctl(control_.get(), SIOCSIFFLAGS, &request) == 0;
  }

  static bool replace(const char* path, const std::string& content) {
    char name[] = "/tmp/muster-test-own-XXXXXX";
    UniqueFd file(mkstemp(name));
    std::ofstream(name) << content;
    const bool mounted = file && mount(name, path, nullptr, MS_BIND, nullptr) == 0;
    unlink(name);
    return mounted;
  }

  UniqueFd control_;
};

}  // namespace muster
