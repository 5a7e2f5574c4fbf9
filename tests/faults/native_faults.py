# SPDX-License-Identifier: Apache-2.0
"""C++ programs, plain and with sanitizers."""

import corpus

native = corpus.group("native")


def add(how, kind, line="", title="", build="native", **rest):
    native(title or how.replace("_", " "), f"exec $FAULTS/{build} {how}", kind, line, **rest)


add("segfault", "segfault", None, "a write to nowhere")
add("stack", "segfault", None, "a stack without end")
add("divide", "fpe", None, "a division by zero")
add("illegal", "illegal_instruction", None, "a trap")
add("abort", "abort", None, "abort without a word")
add(
    "assert",
    "assertion",
    "Assertion `world_size > 0 && \"world size must be positive\"' failed.",
    "assert()",
)
add("throw", "cpp_exception", "what():  shard 12: checksum mismatch", "an uncaught exception")
add("thread_throw", "cpp_exception", "what():  vector::at: bucket 9", "an exception in a thread")
add("no_memory", "memory_error", "std::bad_alloc", "std::bad_alloc")
add(
    "no_thread",
    "abort",
    "terminate called without an active exception",
    "a thread that was not joined",
)
add("broken_pipe", "signal", None, "SIGPIPE")
add("double_free", "abort", "free(): double free detected in tcache 2", "a double free")
add("heap_corruption", "abort", "(): ", "a broken heap")
add("invalid_free", "abort", "free(): invalid pointer", "a pointer that is not of the heap")
add("stack_smash", "abort", "*** stack smashing detected ***: terminated", "a broken stack")
add("shrunk_file", "bus_error", None, "a mapped file that became shorter")
add(
    "disk_full",
    "disk_full",
    "No space left on device",
    "a full disk, by std::system_error",
    needs="root, tmpfs",
)
add(
    "heap_overflow",
    "sanitizer",
    "ERROR: AddressSanitizer: heap-buffer-overflow",
    "AddressSanitizer: a heap overflow",
    build="native_asan",
)
add(
    "use_after_free",
    "sanitizer",
    "ERROR: AddressSanitizer: heap-use-after-free",
    "AddressSanitizer: use after free",
    build="native_asan",
)
add(
    "segfault",
    "sanitizer",
    "ERROR: AddressSanitizer: SEGV on unknown address",
    "AddressSanitizer: a write to nowhere",
    build="native_asan",
)
add(
    "leak",
    "sanitizer",
    "ERROR: LeakSanitizer: detected memory leaks",
    "LeakSanitizer: a leak",
    build="native_asan",
)
add(
    "overflow",
    "sanitizer",
    "runtime error: signed integer overflow",
    "UndefinedBehaviorSanitizer: an overflow",
    build="native_ubsan",
)
add(
    "race",
    "sanitizer",
    "WARNING: ThreadSanitizer: data race",
    "ThreadSanitizer: a race",
    build="native_tsan",
)
native(
    "a symbol that no library has",
    "exec $FAULTS/needs_symbol",
    "library_missing",
    "symbol lookup error",
)
