// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/thread_view.h"

#include <dirent.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

namespace muster {

namespace {

// A stack in the kernel is short; more than this is somebody else's file.
constexpr size_t kMaxKernelFrames = 64;

struct NamedCall {
  long number;
  const char* name;
};

// Those in which a program can stay.
#define MUSTER_CALL(name) \
  { SYS_##name, #name }
constexpr NamedCall kCalls[] = {
    MUSTER_CALL(read),
    MUSTER_CALL(write),
    MUSTER_CALL(readv),
    MUSTER_CALL(writev),
    MUSTER_CALL(pread64),
    MUSTER_CALL(pwrite64),
    MUSTER_CALL(openat),
    MUSTER_CALL(close),
    MUSTER_CALL(fsync),
    MUSTER_CALL(fdatasync),
    MUSTER_CALL(ioctl),
    MUSTER_CALL(flock),
    MUSTER_CALL(fcntl),
    MUSTER_CALL(ftruncate),
    MUSTER_CALL(getdents64),
    MUSTER_CALL(renameat2),
    MUSTER_CALL(unlinkat),
    MUSTER_CALL(statfs),
    MUSTER_CALL(accept),
    MUSTER_CALL(accept4),
    MUSTER_CALL(connect),
    MUSTER_CALL(recvfrom),
    MUSTER_CALL(recvmsg),
    MUSTER_CALL(recvmmsg),
    MUSTER_CALL(sendto),
    MUSTER_CALL(sendmsg),
    MUSTER_CALL(sendmmsg),
    MUSTER_CALL(ppoll),
    MUSTER_CALL(pselect6),
    MUSTER_CALL(epoll_pwait),
    MUSTER_CALL(futex),
    MUSTER_CALL(nanosleep),
    MUSTER_CALL(clock_nanosleep),
    MUSTER_CALL(wait4),
    MUSTER_CALL(waitid),
    MUSTER_CALL(rt_sigtimedwait),
    MUSTER_CALL(rt_sigsuspend),
    MUSTER_CALL(semop),
    MUSTER_CALL(semtimedop),
    MUSTER_CALL(msgrcv),
    MUSTER_CALL(msgsnd),
    MUSTER_CALL(mq_timedreceive),
    MUSTER_CALL(io_getevents),
    MUSTER_CALL(splice),
    MUSTER_CALL(sendfile),
    MUSTER_CALL(msync),
    MUSTER_CALL(munmap),
    MUSTER_CALL(mmap),
    MUSTER_CALL(madvise),
    MUSTER_CALL(restart_syscall),
    MUSTER_CALL(sched_yield),
    MUSTER_CALL(sync),
    MUSTER_CALL(syncfs),
    MUSTER_CALL(io_uring_enter),
    MUSTER_CALL(execve),
    MUSTER_CALL(exit_group),
    MUSTER_CALL(newfstatat),
#ifdef SYS_poll  // what newer machines no longer have
    MUSTER_CALL(poll),
    MUSTER_CALL(select),
    MUSTER_CALL(epoll_wait),
    MUSTER_CALL(pause),
    MUSTER_CALL(open),
    MUSTER_CALL(stat),
    MUSTER_CALL(lstat),
    MUSTER_CALL(rename),
    MUSTER_CALL(unlink),
    MUSTER_CALL(mkdir),
    MUSTER_CALL(access),
#endif
};
#undef MUSTER_CALL

std::string call_name(long number) {
  for (const NamedCall& call : kCalls) {
    if (call.number == number) return call.name;
  }
  return "system call " + std::to_string(number);
}

// The threads of a process, its main one first. None if it is gone.
std::vector<int> thread_ids(int pid, const std::string& proc) {
  const std::string path = proc + "/" + std::to_string(pid) + "/task";
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  std::vector<int> ids;
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
    for (int id : parse_pid_list(entry->d_name))
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(),
            [pid](int a, int b) { return std::pair(a != pid, a) < std::pair(b != pid, b); });
  return ids;
}

std::optional<ThreadView> view_thread(int tid, const std::string& task) {
  const std::optional<ProcStat> stat = read_proc_stat(tid, task);
  if (!stat) return std::nullopt;
  ThreadView view;
  view.tid = tid;
  view.name = stat->comm;
  view.state = stat->state;
  view.wait_channel = read_wait_channel(tid, task);
  const std::string base = task + "/" + std::to_string(tid);
  view.system_call = parse_system_call(read_proc_file(base + "/syscall").value_or(""));
  view.kernel = parse_kernel_stack(read_proc_file(base + "/stack").value_or(""));
  return view;
}

}  // namespace

std::string_view state_words(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
    case 'I':
      return "asleep";
    case 'D':
      return "stuck in the kernel";
    case 'T':
      return "stopped (SIGSTOP or Ctrl-Z)";
    case 't':
      return "stopped by a debugger";
    case 'Z':
    case 'X':
      return "dead";
    default:
      return "in a state unknown here";
  }
}

std::vector<std::string> parse_kernel_stack(std::string_view text) {
  std::vector<std::string> frames;
  while (!text.empty() && frames.size() < kMaxKernelFrames) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t name = line.find("] ");
    if (name == std::string_view::npos) continue;
    line.remove_prefix(name + 2);
    frames.emplace_back(line.substr(0, line.find_first_of("+ ")));
  }
  return frames;
}

std::string parse_system_call(std::string_view text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // "running", or -1 for a thread that waits outside of any call.
  return error != std::errc() || number < 0 ? "" : call_name(number);
}

ProcessView view_process(int pid, const std::string& proc) {
  ProcessView view;
  view.pid = pid;
  const std::string task = proc + "/" + std::to_string(pid) + "/task";
  for (int tid : thread_ids(pid, proc)) {
    if (view.threads.size() >= kMaxThreads) {
      ++view.threads_left_out;
      continue;
    }
    if (auto thread = view_thread(tid, task)) view.threads.push_back(std::move(*thread));
  }
  if (!view.threads.empty()) view.name = view.threads.front().name;
  return view;
}

RankView view_rank(int rank, int pid, const std::string& proc) {
  RankView view;
  view.rank = rank;
  view.pid = pid;
  view.processes.push_back(view_process(pid, proc));
  for (const ProcStat& child : descendants_of(pid, {}, proc)) {
    if (view.processes.size() >= kMaxProcesses) {
      ++view.processes_left_out;
      continue;
    }
    ProcessView process = view_process(child.pid, proc);
    if (!process.threads.empty()) view.processes.push_back(std::move(process));
  }
  return view;
}

}  // namespace muster
