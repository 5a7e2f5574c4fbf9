// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/identity.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <fstream>
#include <iterator>
#include <sstream>

namespace muster::comm::detail {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const char* path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path, target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "?";
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 && name[0] != '\0' ? name : "?";
}

// When a process began, in clock ticks since the boot; nullopt: there is no such process, or only
// what its parent has not yet collected of it.
std::optional<uint64_t> start_of(int64_t pid) {
  std::string stat = first_line("/proc/" + std::to_string(pid) + "/stat");
  // The name, in brackets, may hold anything.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int field = 4; field < 22; ++field)
    fields >> skipped;
  uint64_t started = 0;
  if (!(fields >> started)) return std::nullopt;
  return started;
}

}  // namespace

Identity Identity::own() {
  static std::atomic<uint64_t> serial = 0;
  Identity own;
  own.host = host_name();
  own.boot = first_line("/proc/sys/kernel/random/boot_id");
  own.pid_space = link_target("/proc/self/ns/pid");
  own.net_space = link_target("/proc/self/ns/net");
  own.pid = getpid();
  own.started = start_of(own.pid).value_or(0);
  own.serial = ++serial;
  return own;
}

std::string Identity::encode() const {
  std::ostringstream out;
  out << pid << ' ' << started << ' ' << serial << '\n'
      << host << '\n'
      << boot << '\n'
      << pid_space << '\n'
      << net_space;
  return out.str();
}

std::optional<Identity> Identity::decode(std::string_view bytes) {
  std::istringstream in{std::string(bytes)};
  Identity read;
  if (!(in >> read.pid >> read.started >> read.serial) || in.get() != '\n') return std::nullopt;
  for (std::string* text : {&read.host, &read.boot, &read.pid_space, &read.net_space})
    if (!std::getline(in, *text)) return std::nullopt;
  return read;
}

bool Identity::same_host(const Identity& other) const {
  return boot == other.boot && pid_space == other.pid_space;
}

bool Identity::lives() const {
  return start_of(pid) == started;
}

std::string Identity::to_string() const {
  return "pid " + std::to_string(pid) + " on " + host;
}

}  // namespace muster::comm::detail
