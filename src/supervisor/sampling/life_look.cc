// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/life_look.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/traceback.h"

namespace muster {

namespace {

constexpr size_t kMaxError = 200;
// A resource tracker or a logger may say something after it.
constexpr size_t kLinesAfter = 4;
// The kernel's function in which a shell waits.
constexpr std::string_view kWaitsForChild = "do_wait";
// The way into any system call. It is all that is seen of some that were begun anew, after a
// SIGCONT or when a debugger has let go.
constexpr std::string_view kAnyCall[] = {"do_syscall_64", "invoke_syscall"};

// The number behind "name:" at the start of a line.
std::optional<uint64_t> field(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::string_view rest = text.substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(": \t"), rest.size()));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc()) return number;
  }
  return std::nullopt;
}

bool add_detail(int pid, const std::string& proc, LifeDetail& detail) {
  const std::string folder = proc + "/" + std::to_string(pid);
  const auto io = read_proc_file(folder + "/io");
  const auto status = read_proc_file(folder + "/status");
  if (!io || !status) return false;
  detail.io_bytes += field(*io, "rchar").value_or(0) + field(*io, "wchar").value_or(0);
  detail.switches += field(*status, "voluntary_ctxt_switches").value_or(0);
  return true;
}

// From the root down as long as there is nothing but one process that waits for its only child.
ProcMember leading(int root, const std::vector<ProcMember>& members, const std::string& proc) {
  ProcMember at{root, 0, '?'};
  for (const ProcMember& member : members)
    if (member.pid == root) at = member;
  for (size_t depth = 0; depth < members.size(); ++depth) {
    if (at.state != 'S' || read_wait_channel(at.pid, proc) != kWaitsForChild) break;
    const ProcMember* child = nullptr;
    int children = 0;
    for (const ProcMember& member : members) {
      if (member.ppid != at.pid || member.state == 'Z') continue;
      child = &member;
      ++children;
    }
    if (children != 1) break;
    at = *child;
  }
  return at;
}

}  // namespace

std::optional<LifeDetail> life_detail(int root, const std::vector<ProcMember>& members,
                                      const std::string& proc) {
  LifeDetail detail;
  bool known = false;
  for (const ProcMember& member : members) {
    const bool read = add_detail(member.pid, proc, detail);
    if (member.pid == root) known = read;
  }
  return known ? std::optional(detail) : std::nullopt;
}

Waiting how_it_waits(int root, const std::vector<ProcMember>& members, const std::string& proc) {
  ProcMember shown = leading(root, members, proc);
  for (char worst : {'D', 't', 'T'}) {
    if (shown.state == 'T') break;
    for (const ProcMember& member : members) {
      if (member.state == worst && shown.state != worst) shown = member;
    }
  }
  if (shown.state == '?') return {};
  std::string channel = read_wait_channel(shown.pid, proc);
  const bool anywhere =
      std::find(std::begin(kAnyCall), std::end(kAnyCall), channel) != std::end(kAnyCall);
  if (anywhere) channel.clear();
  return {shown.state, std::move(channel)};
}

std::string traceback_at_end(std::string_view tail) {
  const std::optional<Traceback> found = find_traceback(clean_lines(tail));
  if (!found || found->lines_after > kLinesAfter) return "";
  return cut_line(found->summary(), kMaxError);
}

}  // namespace muster
