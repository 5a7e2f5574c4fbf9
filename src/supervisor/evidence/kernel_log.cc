// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "supervisor/diagnosis/wait_status.h"

// The lines of interest, as the kernel and NVIDIA's driver write them:
//   memory: usage 524288kB, limit 524288kB, failcnt 33
//   oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/job,task_memcg=/job,task=python3,pid=7,uid=0
//   Memory cgroup out of memory: Killed process 7 (python3) total-vm:76668kB, ...
//   python3[8]: segfault at 0 ip ... in libfoo.so[...]
//   traps: python3[8] trap invalid opcode ip:... in libfoo.so[...]
//   NVRM: Xid (PCI:0000:17:00): 79, pid=7, name=python3, GPU has fallen off the bus.

namespace muster {

namespace {

// Read at one go: far more than the kernel's buffer holds unless somebody floods it.
constexpr int kMaxRecords = 100'000;
constexpr size_t kMaxRecord = 8192;          // the kernel's own bound
constexpr size_t kMaxKept = 1000;            // bytes of a line
constexpr ino_t kMachinesPids = 0xEFFFFFFC;  // the first namespace of pids has this number

template <typename Number>
Number number_at(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What follows `key` in `text`, nothing if it is not there.
std::optional<std::string_view> after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + key.size());
}

// "python3[8]: segfault at" and "traps: python3[8] trap": the number in the last brackets before
// `end`.
int pid_before(std::string_view text, size_t end) {
  const size_t open = text.rfind('[', end);
  return open == std::string_view::npos ? 0 : number_at<int>(text.substr(open + 1));
}

std::optional<KernelNote> xid_note(std::string_view line) {
  auto rest = after(line, "NVRM: Xid (PCI:");
  if (!rest) return std::nullopt;
  KernelNote note;
  note.kind = KernelNote::Kind::kXid;
  note.pci = rest->substr(0, rest->find(')'));
  if (auto pid = after(*rest, " pid=")) {
    if (!pid->empty() && pid->front() == '\'') pid->remove_prefix(1);
    note.pid = number_at<int>(*pid);
  }
  return note;
}

std::optional<KernelNote> fault_note(std::string_view line) {
  KernelNote note;
  const size_t fault = line.find("]: segfault at ");
  if (fault != std::string_view::npos) {
    note.pid = pid_before(line, fault);
  } else if (line.rfind("traps: ", 0) == 0) {
    const size_t end = line.find("] ");
    note.pid = end == std::string_view::npos ? 0 : pid_before(line, end);
  }
  if (note.pid == 0) return std::nullopt;
  return note;
}

// The numbers of processes that lines of `text` tell of: "(pid(s) 724) exited", "724 Killed". A
// number alone may be anything.
void add_mentioned(std::string_view text, std::set<int>& pids) {
  constexpr std::string_view kDigits = "0123456789";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto tells = [line](std::string_view word) {
      return line.find(word) != std::string_view::npos;
    };
    if (!tells("pid") && !tells("rocess") && !tells("Killed") && !tells("egmentation fault"))
      continue;
    for (size_t at = line.find_first_of(kDigits); at != std::string_view::npos;
         at = line.find_first_of(kDigits)) {
      line.remove_prefix(at);
      const size_t length = std::min(line.find_first_not_of(kDigits), line.size());
      if (const int pid = number_at<int>(line.substr(0, length)); pid > 0) pids.insert(pid);
      line.remove_prefix(length);
    }
  }
}

// Of each of the dead the pids that its last lines name, read when they are first asked for.
class Mentions {
 public:
  explicit Mentions(const std::vector<Evidence>& dead) : dead_(dead), pids_(dead.size()) {}

  bool has(size_t at, int pid) {
    if (!pids_[at]) {
      add_mentioned(dead_[at].stderr_tail, pids_[at].emplace());
      add_mentioned(dead_[at].stdout_tail, *pids_[at]);
    }
    return pids_[at]->contains(pid);
  }

 private:
  const std::vector<Evidence>& dead_;
  std::vector<std::optional<std::set<int>>> pids_;
};

// The signal that ended it or, as a shell tells it, its command.
int signal_of(const Evidence& evidence) {
  const WaitStatus status = decode_wait_status(evidence.wait_status);
  if (status.signal != 0) return status.signal;
  return status.exit_code > 128 ? status.exit_code - 128 : 0;
}

bool could_be(const KernelNote& note, const Evidence& evidence) {
  const int signal = signal_of(evidence);
  if (note.kind == KernelNote::Kind::kFault) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGTRAP;
  }
  // Somebody else's kill must not explain one by hand: our own cgroup has to have counted it.
  return note.kind == KernelNote::Kind::kOutOfMemory && signal == SIGKILL && evidence.memory;
}

void give(const KernelNote& note, Evidence& evidence) {
  evidence.kernel_lines.push_back(note.text);
  if (note.kind != KernelNote::Kind::kOutOfMemory || evidence.memory) return;
  evidence.memory = MemoryTrouble{note.memory_group, 1, note.limit_bytes};
}

// An Xid is about all who use that GPU: "0000:17:00" is the place "0000:17:00.0".
void give_by_gpu(const KernelNote& note, std::vector<Evidence>& dead) {
  for (Evidence& evidence : dead) {
    if (!note.pci.empty() && evidence.gpu.rfind(note.pci + ".", 0) == 0) give(note, evidence);
  }
}

// Nobody's so far: to the one worker that it can be about, if it is the only such line.
void give_rest(const std::vector<const KernelNote*>& rest, KernelNote::Kind kind,
               std::vector<Evidence>& dead) {
  std::vector<const KernelNote*> of_kind;
  std::copy_if(rest.begin(), rest.end(), std::back_inserter(of_kind),
               [kind](const KernelNote* note) { return note->kind == kind; });
  if (of_kind.size() != 1) return;
  Evidence* only = nullptr;
  for (Evidence& evidence : dead) {
    if (!evidence.kernel_lines.empty() || evidence.stopped_for != StopReason::kNone) continue;
    if (!could_be(*of_kind.front(), evidence)) continue;
    if (only != nullptr) return;
    only = &evidence;
  }
  if (only != nullptr) give(*of_kind.front(), *only);
}

}  // namespace

void KernelNotes::add_record(std::string_view record) {
  // priority,sequence,microseconds,flags;text\n KEY=value\n: the priority's upper bits say who
  // wrote it, and the kernel is 0.
  const size_t text = record.find(';');
  if (text == std::string_view::npos || number_at<unsigned>(record) >= 8) return;
  record.remove_prefix(text + 1);
  add_line(record.substr(0, record.find('\n')));
}

void KernelNotes::add_line(std::string_view line) {
  if (line.rfind("memory: usage ", 0) == 0) {
    if (auto limit = after(line, "limit ")) limit_bytes_ = number_at<int64_t>(*limit) * 1024;
    return;
  }
  if (line.rfind("oom-kill:", 0) == 0) {
    memory_group_.clear();
    if (auto group = after(line, "oom_memcg=")) memory_group_ = group->substr(0, group->find(','));
    return;
  }
  KernelNote note;
  if (auto killed = after(line, "Killed process ")) {
    note.kind = KernelNote::Kind::kOutOfMemory;
    note.pid = number_at<int>(*killed);
    note.memory_group = std::exchange(memory_group_, "");
    note.limit_bytes = std::exchange(limit_bytes_, 0);
    if (note.memory_group.empty()) note.limit_bytes = 0;
  } else if (auto xid = xid_note(line)) {
    note = *xid;
  } else if (auto fault = fault_note(line)) {
    note = *fault;
  } else {
    return;
  }
  note.text = line.substr(0, kMaxKept);
  push(std::move(note));
}

void KernelNotes::push(KernelNote note) {
  notes_.push_back(std::move(note));
  if (notes_.size() > kMaxNotes) notes_.pop_front();
}

KernelLog::KernelLog(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ && lseek(fd_.get(), 0, SEEK_END) < 0) fd_.reset();
}

std::vector<KernelNote> KernelLog::read() {
  const std::lock_guard lock(mutex_);
  std::array<char, kMaxRecord> record{};
  for (int i = 0; fd_ && i < kMaxRecords; ++i) {
    const ssize_t got = ::read(fd_.get(), record.data(), record.size());
    if (got > 0) {
      notes_.add_record({record.data(), static_cast<size_t>(got)});
    } else if (got == 0 || (errno != EPIPE && errno != EINTR)) {  // EPIPE: older ones were lost
      break;
    }
  }
  return notes_.take();
}

bool sees_machine_pids() {
  struct stat own {};
  return stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == kMachinesPids;
}

void share_kernel_notes(const std::vector<KernelNote>& notes, bool same_pids,
                        std::vector<Evidence>& dead) {
  std::vector<const KernelNote*> rest;
  Mentions mentions(dead);
  for (const KernelNote& note : notes) {
    auto owner = dead.end();
    if (same_pids && note.pid > 0) {
      owner = std::find_if(dead.begin(), dead.end(),
                           [&](const Evidence& e) { return e.pid == note.pid; });
      if (owner == dead.end()) {
        owner = std::find_if(dead.begin(), dead.end(), [&](const Evidence& e) {
          return mentions.has(static_cast<size_t>(&e - dead.data()), note.pid);
        });
      }
    }
    if (owner != dead.end()) {
      give(note, *owner);
    } else if (note.kind == KernelNote::Kind::kXid) {
      give_by_gpu(note, dead);
    } else {
      rest.push_back(&note);
    }
  }
  give_rest(rest, KernelNote::Kind::kOutOfMemory, dead);
  give_rest(rest, KernelNote::Kind::kFault, dead);
}

}  // namespace muster
