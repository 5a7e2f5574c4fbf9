// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/rules.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <string>

#include "supervisor/diagnosis/diagnose.h"

namespace muster {

namespace {

constexpr int kExit = 1 << 8;  // wait status of an exit with code 1

struct Row {
  int wait_status;
  const char* stderr_text;
  const char* kind;
  const char* line;  // part of it
  bool victim = false;
  const char* blames = "";
};

event::FailureFound of(const Row& row) {
  Evidence evidence;
  evidence.pid = 7;
  evidence.rank = 0;
  evidence.wait_status = row.wait_status;
  evidence.stderr_tail = row.stderr_text;
  return diagnose(evidence);
}

void check(const Row& row) {
  CAPTURE(row.stderr_text);
  const event::FailureFound failure = of(row);
  CHECK(failure.kind == row.kind);
  CHECK(failure.victim == row.victim);
  CHECK(failure.blames == row.blames);
  CAPTURE(failure.line);
  CHECK(failure.line.find(row.line) != std::string::npos);
  CHECK(failure.line_source == "stderr");
}

// The end of a Python program that raised this.
std::string raised(const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    f()\n" +
         exception + "\n";
}

void check_raised(const std::string& exception, const char* kind, bool victim = false,
                  const char* blames = "") {
  CAPTURE(exception);
  const event::FailureFound failure = of({kExit, raised(exception).c_str(), "", ""});
  CHECK(failure.kind == kind);
  CHECK(failure.victim == victim);
  CHECK(failure.blames == blames);
  CHECK_FALSE(failure.line.empty());
  CHECK(exception.find(failure.line) != std::string::npos);
}

}  // namespace

TEST_CASE("what native code prints about its own end gives the kind and the line") {
  const Row rows[] = {
      {SIGABRT,
       "step 3\nterminate called after throwing an instance of 'std::runtime_error'\n"
       "  what():  loss is NaN\n",
       "cpp_exception", "what():  loss is NaN"},
      {SIGABRT, "terminate called after throwing an instance of 'int'\n", "cpp_exception",
       "instance of 'int'"},
      {SIGABRT, "libc++abi: terminating due to uncaught exception of type std::logic_error: x\n",
       "cpp_exception", "std::logic_error: x"},
      {SIGABRT,
       "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  "
       "std::bad_alloc\n",
       "memory_error", "std::bad_alloc"},
      {SIGABRT,
       "terminate called after throwing an instance of 'std::system_error'\n"
       "  what():  write checkpoint: No space left on device\n",
       "disk_full", "write checkpoint: No space"},
      {SIGABRT, "terminate called without an active exception\n", "abort", "without an active"},
      {SIGABRT, "a: a.cc:11: int main(int, char**): Assertion `k==2' failed.\n", "assertion",
       "Assertion `k==2' failed."},
      {SIGABRT,
       "/usr/include/c++/12/bits/stl_vector.h:1123: reference operator[](size_type): Assertion "
       "'__n < this->size()' failed.\n",
       "assertion", "__n < this->size()"},
      {SIGABRT, "F1130 09:00:00.000 12 model.cc:12] Check failed: x == y (1 vs. 2) \n", "assertion",
       "Check failed: x == y"},
      {SIGABRT, "free(): double free detected in tcache 2\n", "abort", "free(): double free"},
      {SIGABRT, "malloc(): corrupted top size\n", "abort", "corrupted top size"},
      {SIGABRT, "*** stack smashing detected ***: terminated\n", "abort", "stack smashing"},
      {kExit,
       "=================\n==21187==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6\n"
       "READ of size 4 at 0x602000000018 thread T0\n    #0 0x55 in main a.cc:21\n",
       "sanitizer", "AddressSanitizer: heap-buffer-overflow"},
      {kExit, "==212==ERROR: LeakSanitizer: detected memory leaks\n", "sanitizer", "LeakSanitizer"},
      {66 << 8,
       "WARNING: ThreadSanitizer: data race (pid=5)\nThreadSanitizer: reported 1 warning\n",
       "sanitizer", "data race"},
      {kExit, "a.cc:22:41: runtime error: signed integer overflow: 2 + 2147483647\n", "sanitizer",
       "a.cc:22:41"},
      {127 << 8,
       "./b: error while loading shared libraries: libnope.so: cannot open shared object file: No "
       "such file or directory\n",
       "library_missing", "libnope.so"},
      {127 << 8, "./b: symbol lookup error: ./b: undefined symbol: f\n", "library_missing",
       "undefined symbol: f"},
      {kExit, "./b: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./b)\n",
       "library_missing", "GLIBC_2.38"},
      {127 << 8, "sh: 1: nosuchcmd: not found\n", "exec_not_found", "nosuchcmd"},
      {127 << 8, "bash: nosuchcmd: command not found\n", "exec_not_found", "nosuchcmd"},
      {126 << 8, "sh: 1: /etc/passwd: Permission denied\n", "exec_denied", "/etc/passwd"},
      {139 << 8, "run.sh: line 2: 21279 Segmentation fault      python3 f.py\n", "segfault",
       "21279"},
      {137 << 8, "run.sh: line 2: 77 Killed      python3 f.py\n", "killed", "77 Killed"},
  };
  for (const Row& row : rows)
    check(row);
}

TEST_CASE("an exception of Python has the kind of what it says") {
  check_raised("OSError: [Errno 28] No space left on device: '/scratch/model.pt'", "disk_full");
  check_raised("OSError: [Errno 122] Disk quota exceeded", "disk_full");
  check_raised("OSError: [Errno 24] Too many open files: '/data/7.bin'", "fd_limit");
  check_raised("OSError: [Errno 98] Address already in use", "address_in_use");
  check_raised("socket.gaierror: [Errno -2] Name or service not known", "name_resolution");
  check_raised("PermissionError: [Errno 13] Permission denied: '/data'", "permission_denied");
  check_raised("ConnectionResetError: [Errno 104] Connection reset by peer", "connection_lost",
               true);
  check_raised("BrokenPipeError: [Errno 32] Broken pipe", "connection_lost", true);
  check_raised("ImportError: libcudart.so.11.0: cannot open shared object file: No such file",
               "library_missing");
  check_raised("ImportError: /x/_C.so: undefined symbol: _ZN3c106detail", "library_missing");
  check_raised("ImportError: cannot import name 'x' from 'y'", "python_import_error");
  check_raised("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB",
               "memory_error");
  check_raised("ValueError: bad shape", "python_exception");
  check_raised("AssertionError: batch is empty", "python_exception");
}

TEST_CASE("errors of PyTorch and gloo have their kinds, and victims are seen") {
  check_raised(
      "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer "
      "[127.0.0.1]:14256",
      "connection_lost", true);
  check_raised(
      "RuntimeError: [./gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:42186: "
      "Connection reset by peer",
      "connection_lost", true);
  check_raised(
      "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 4000ms "
      "for recv operation to complete",
      "collective_timeout", true);
  check_raised(
      "RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms\n "
      "Original exception: \n[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
      "waiting 2000ms for recv operation to complete",
      "collective_timeout", true, "2");
  check_raised("RuntimeError: [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 2000 ms",
               "collective_timeout", true, "1,2");
  check_raised("RuntimeError: Socket Timeout", "store_timeout", true);
  check_raised(
      "torch.distributed.DistStoreError: wait timeout after 2000ms, keys: "
      "/default_pg/0//checkpoint_ready",
      "store_timeout", true);
  check_raised(
      "torch.distributed.DistStoreError: wait timeout after 4000ms, keys: "
      "/default_pg/0//cpu//0/2",
      "store_timeout", true, "2");
  check_raised("torch.distributed.DistNetworkError: failed to recv, got 0 bytes", "connection_lost",
               true);
  check_raised(
      "RuntimeError: [2]: params[0] in this process with sizes [2, 4] appears not to "
      "match sizes of the same param in process 0.",
      "collective_mismatch");
  check_raised(
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
      "collective: CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 1 is running "
      "collective: CollectiveFingerPrint(OpType=BROADCAST).",
      "collective_mismatch");
  check_raised(
      "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: "
      "can't allocate memory: you tried to allocate 281474976710656 bytes.",
      "memory_error");
  check_raised("RuntimeError: [enforce fail at inline_container.cc:337] . unexpected pos 64 vs 0",
               "disk_full");
  check({SIGABRT,
         "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
         "  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= "
         "op.nbytes. 8 vs 4\n",
         "collective_mismatch", "op.preamble.length"});
}

TEST_CASE("errors of NCCL and CUDA have their kinds") {
  check_raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
               "cuda_oom");
  check_raised("RuntimeError: CUDA error: device-side assert triggered", "cuda_error");
  check_raised("RuntimeError: CUDA error: invalid device ordinal", "too_few_gpus");
  check_raised("RuntimeError: No CUDA GPUs are available", "too_few_gpus");
  check_raised("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
               "driver_mismatch");
  check_raised("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_fault");
  const std::string backend =
      "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1333, ";
  check_raised(backend +
                   "invalid usage, NCCL version 2.18.1\nncclInvalidUsage: This usually "
                   "reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU "
                   "detected : rank 1 and rank 0 both on CUDA device 1000",
               "duplicate_gpu");
  check_raised(backend +
                   "remote process exited or there was a network error, NCCL version "
                   "2.18.1\nncclRemoteError: A call failed possibly due to a network error",
               "nccl_error", true);
  check_raised(backend +
                   "unhandled system error, NCCL version 2.18.1\nncclSystemError: System "
                   "call failed.",
               "nccl_error");
  check({SIGABRT,
         "[rank1]:[E ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation "
         "timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600081 "
         "milliseconds before timing out.\n"
         "\t - To our best knowledge, ranks [3, 5] are the lagging ranks that caused this timeout. "
         "They never joined any collectives\n"
         "terminate called after throwing an instance of 'c10::DistBackendError'\n"
         "  what():  [PG 0 Rank 1] Process group watchdog thread terminated with exception: [Rank "
         "1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4) ran for 600081 "
         "milliseconds before timing out.\n",
         "nccl_timeout", "Watchdog caught", true, "3,5"});
}

TEST_CASE("what gloo notes beside its work is no error") {
  constexpr char kNote[] =
      "[./gloo/transport/tcp/context.cc:243] INFO Rank 2 is connected to 2. Expected number of "
      "connected peers is: 2\n";
  CHECK(of({kExit, kNote, "", ""}).kind == "exit_code");
}

TEST_CASE("the cause that a chain of exceptions began with gives the kind") {
  const std::string text = raised("OSError: [Errno 28] No space left on device: '/x'") +
                           "\nThe above exception was the direct cause of the following "
                           "exception:\n\n" +
                           raised("RuntimeError: checkpoint failed");
  check({kExit, text.c_str(), "disk_full", "OSError: [Errno 28]"});
  CHECK(of({kExit, text.c_str(), "", ""}).message ==
        "RuntimeError: checkpoint failed (train.py:9)");
  const std::string killed =
      raised("RuntimeError: DataLoader worker (pid 724) is killed by signal: Killed. ") +
      "\nThe above exception was the direct cause of the following exception:\n\n" +
      raised("RuntimeError: DataLoader worker (pid(s) 724) exited unexpectedly");
  check({kExit, killed.c_str(), "data_worker_died", "is killed by signal: Killed"});
}

TEST_CASE("what programs make of errno") {
  const Row rows[] = {
      {2 << 8, "sh: 1: Pipe call failed\n", "fd_limit", "Pipe call"},
      {7 << 8, "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect\n",
       "connection_lost", "curl: (7)", true},
      {6 << 8, "curl: (6) Could not resolve host: nohost\n", "name_resolution", "nohost"},
      {kExit, "cp: error writing '/dev/full': No space left on device\n", "disk_full", "/dev/full"},
      {kExit, "cat: /etc/shadow: Permission denied\n", "permission_denied", "/etc/shadow"},
  };
  for (const Row& row : rows)
    check(row);
}

TEST_CASE("an ordinary error far from the end was survived") {
  std::string text = "retry: Connection refused\n";
  for (int i = 0; i < 10; ++i)
    text += "step\n";
  CHECK(of({3 << 8, text.c_str(), "", ""}).kind == "exit_code");
  text = "CUDA out of memory, halving the batch\n";
  for (int i = 0; i < 100; ++i)
    text += "step\n";
  CHECK(of({3 << 8, text.c_str(), "", ""}).kind == "exit_code");
  // An exception says why it ended; what was written before it does not.
  text = "WARNING: Connection reset by peer, trying again\n" + raised("ValueError: x");
  CHECK(of({kExit, text.c_str(), "", ""}).kind == "python_exception");
}

TEST_CASE("a cause whose text goes on in the next line gives the kind and its first line") {
  const std::string text =
      raised("RuntimeError: worker failed:\n\tCUDA out of memory. Tried to allocate 2 GiB") +
      "\nDuring handling of the above exception, another exception occurred:\n\n" +
      raised("ValueError: no batch");
  const event::FailureFound failure = of({kExit, text.c_str(), "", ""});
  CHECK(failure.kind == "cuda_oom");
  CHECK(failure.line == "RuntimeError: worker failed:");
}

TEST_CASE("the worker library's error file tells a victim from a cause") {
  auto of_error = [](const std::string& message, const std::string& comm_error) {
    Evidence evidence;
    evidence.wait_status = kExit;
    evidence.error_file_present = true;
    evidence.error_file_text = R"({"message": {"message": "muster::comm::ErrorException: )" +
                               message + R"(", "extraInfo": {"comm_error": ")" + comm_error +
                               R"(", "py_callstack": "Stack (most recent call last):\n  main"}}})";
    return diagnose(evidence);
  };
  event::FailureFound failure = of_error("all_reduce #7: rank 3 lost", "peer_lost");
  CHECK(failure.kind == "connection_lost");
  CHECK(failure.victim);
  CHECK(failure.blames == "3");
  CHECK(failure.line_source == "error file");
  failure =
      of_error("all_reduce #7: timeout after 5 s; nothing is heard of ranks 1-2 and 5", "timeout");
  CHECK(failure.kind == "collective_timeout");
  CHECK(failure.blames == "1-2,5");
  failure = of_error("all_reduce #7: broadcast #7 on rank 2", "mismatch");
  CHECK(failure.kind == "collective_mismatch");
  CHECK_FALSE(failure.victim);
  failure = of_error("all_reduce #7: aborted", "aborted");
  CHECK(failure.kind == "cpp_exception");
  CHECK(failure.victim);
  failure = of_error("no such file", "system");
  CHECK(failure.kind == "cpp_exception");
  CHECK_FALSE(failure.victim);
}

TEST_CASE("a rank does not blame itself") {
  const std::string text = raised("RuntimeError: Rank 0 failed to pass monitoredBarrier in 9 ms");
  CHECK(of({kExit, text.c_str(), "", ""}).blames.empty());
}

TEST_CASE("a dump of faulthandler gives the frame of the program's own") {
  const event::FailureFound failure =
      of({SIGSEGV,
          "Fatal Python error: Segmentation fault\n\nThread 0x00007fde (most recent call first):\n"
          "  File \"/usr/lib/python3.11/threading.py\", line 982 in run\n\n"
          "Current thread 0x00007fde4e257b80 (most recent call first):\n"
          "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
          "  File \"/home/u/f.py\", line 3 in step\n"
          "  File \"/home/u/f.py\", line 5 in <module>\n",
          "", ""});
  CHECK(failure.kind == "segfault");
  CHECK(failure.line == "  File \"/home/u/f.py\", line 3 in step");
  CHECK(failure.message == "killed by SIGSEGV (signal 11) in step (f.py:3)");
}

TEST_CASE("an abort of Python's is shown with the frame too") {
  const event::FailureFound failure =
      of({SIGABRT,
          "Fatal Python error: Aborted\n\nCurrent thread 0x00007fde4e257b80 (most recent call "
          "first):\n  File \"/home/u/g.py\", line 3 in <module>\n",
          "", ""});
  CHECK(failure.kind == "abort");
  CHECK(failure.message == "killed by SIGABRT (signal 6) in <module> (g.py:3)");
  // What native code said before it aborted says more.
  CHECK(of({SIGABRT,
            "free(): invalid pointer\nFatal Python error: Aborted\n\nCurrent thread 0x0 (most "
            "recent call first):\n  File \"/home/u/g.py\", line 3 in <module>\n",
            "", ""})
            .line == "free(): invalid pointer");
}

TEST_CASE("memory that had run out makes a kill an OOM kill") {
  Evidence evidence;
  evidence.wait_status = SIGKILL;
  evidence.max_rss_kib = 3 * 1024 * 1024;
  evidence.memory = MemoryTrouble{"/job", 1, 16LL << 30};
  event::FailureFound failure = diagnose(evidence);
  CHECK(failure.kind == "oom_kill");
  CHECK(failure.line == "cgroup /job: killed 1 process for want of memory, limit 16 GiB");
  CHECK(failure.line_source == "cgroup");
  CHECK(failure.evidence ==
        std::vector<std::string>{failure.line, "most memory that it had: 3 GiB"});
  evidence.kernel_lines = {"Memory cgroup out of memory: Killed process 7 (python3)"};
  failure = diagnose(evidence);
  CHECK(failure.line_source == "kernel log");
  evidence.wait_status = 137 << 8;
  CHECK(diagnose(evidence).kind == "oom_kill");
}

TEST_CASE("a process under it that was killed for memory is the cause if it says so") {
  Evidence evidence;
  evidence.wait_status = 3 << 8;
  evidence.memory = MemoryTrouble{"/job", 1, 16LL << 30};
  evidence.stderr_tail = "no such data set\n";  // another rank's process may have been killed
  CHECK(diagnose(evidence).kind == "exit_code");
  evidence.stderr_tail = "preprocessing failed with 137\n";
  CHECK(diagnose(evidence).kind == "oom_kill");
  CHECK(diagnose(evidence).line_source == "cgroup");
  evidence.stderr_tail = raised("subprocess.CalledProcessError: died with <Signals.SIGKILL: 9>.");
  CHECK(diagnose(evidence).kind == "oom_kill");
  CHECK(diagnose(evidence).message.starts_with("subprocess.CalledProcessError"));
  evidence.stderr_tail = "no such data set\n";
  evidence.kernel_lines = {"Memory cgroup out of memory: Killed process 9 (sh)"};  // its child
  CHECK(diagnose(evidence).kind == "oom_kill");
}

TEST_CASE("the first line of another language's exception is shown, however long its stack") {
  std::string text = "panic: runtime error: index out of range [5] with length 3\n\n";
  for (int i = 0; i < 12; ++i)
    text += "goroutine " + std::to_string(i) + " [running]:\nmain.main()\n";
  const event::FailureFound failure = of({2 << 8, text.c_str(), "", ""});
  CHECK(failure.kind == "exit_code");
  CHECK(failure.line == "panic: runtime error: index out of range [5] with length 3");
  CHECK(failure.message == "exited with code 2");
}

TEST_CASE("a panic that quotes a place is not taken for a sanitizer's report") {
  const event::FailureFound failure =
      of({2 << 8, "panic: load.go:5:9: runtime error: index out of range\n", "", ""});
  CHECK(failure.kind == "exit_code");
}

TEST_CASE("a bus error with a full /dev/shm is a full disk") {
  Evidence evidence;
  evidence.wait_status = SIGBUS;
  evidence.full_disks = {{"/tmp (TMPDIR)", 0, -1}, {"/dev/shm", 0, -1}};
  CHECK(diagnose(evidence).kind == "disk_full");
  CHECK(diagnose(evidence).line == "/dev/shm has no room: 0 B left");
  evidence.full_disks = {{"/home", 0, -1}};
  CHECK(diagnose(evidence).kind == "bus_error");
}

TEST_CASE("the kernel's log tells a failing GPU from a mistake in the program") {
  Evidence evidence;
  evidence.wait_status = kExit;
  evidence.stderr_tail = raised("RuntimeError: CUDA error: unspecified launch failure");
  evidence.kernel_lines = {"NVRM: Xid (PCI:0000:65:00): 13, pid=7, Graphics Exception"};
  CHECK(diagnose(evidence).kind == "cuda_error");
  evidence.kernel_lines.push_back("NVRM: Xid (PCI:0000:65:00): 79, pid=7, GPU has fallen off");
  CHECK(diagnose(evidence).kind == "gpu_fault");
  CHECK(diagnose(evidence).line_source == "kernel log");
}

TEST_CASE("an exception of a thread that was the last thing written explains the exit code") {
  const std::string text = "Exception in thread Thread-1 (f):\n" + raised("ValueError: in thread");
  const event::FailureFound failure = of({3 << 8, text.c_str(), "", ""});
  CHECK(failure.kind == "python_exception");
  CHECK(failure.message == "ValueError: in thread (train.py:9), exited with code 3");
  const std::string ignored = "Exception ignored in: <function A.__del__>\n" + raised("E: late");
  CHECK(of({3 << 8, ignored.c_str(), "", ""}).kind == "exit_code");
}

TEST_CASE("an exit code is shown with the last line that looks like an error") {
  const event::FailureFound failure =
      of({3 << 8, "loading\nfatal: no such data set: x\nsee the manual\n", "", ""});
  CHECK(failure.kind == "exit_code");
  CHECK(failure.line == "fatal: no such data set: x");
  CHECK(failure.line_source == "stderr");
  CHECK(of({3 << 8, "one\ntwo\n", "", ""}).line == "two");
}

}  // namespace muster
