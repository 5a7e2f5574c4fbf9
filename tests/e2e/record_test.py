# SPDX-License-Identifier: Apache-2.0
"""How a C++ worker within muster::comm::record() ends, alone and in the report of its launcher."""

import json
import os
import platform
import re
import signal
import subprocess
import time

import harness
from harness import MusterTest

RECORDED = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "nccl", "report", "recorded")
DEEP = r"trainer::throw_deep\(int\) in recorded\+0x[0-9a-f]+"
# What __builtin_trap() is.
if platform.machine() == "aarch64":
    TRAP = (signal.SIGTRAP, "SIGTRAP: a breakpoint or __builtin_trap")
else:
    TRAP = (signal.SIGILL, "SIGILL: an instruction that this")


class Alone(MusterTest):
    """The worker without a launcher: its file, its stderr, its end."""

    def run_it(self, how, file="error.json", **env):
        if os.path.exists(self.path("error.json")):
            os.remove(self.path("error.json"))
        environment = self.environment(
            TORCHELASTIC_ERROR_FILE=self.path(file) if file else None, **env
        )
        return subprocess.run(
            [RECORDED, how], env=environment, capture_output=True, timeout=harness.PATIENCE
        )

    def recorded(self):
        self.assertEqual([name for name in os.listdir(self.dir) if "part" in name], [])
        message = json.loads(self.file("error.json"))["message"]
        extra = message["extraInfo"]
        self.assertRegex(extra["timestamp"], r"^\d{10}$")
        self.assertLess(abs(int(extra["timestamp"]) - time.time()), 120)
        return message["message"], extra["py_callstack"]

    def comm_error(self):
        return json.loads(self.file("error.json"))["message"]["extraInfo"].get("comm_error")

    def died(self, how, number, text, **env):
        run = self.run_it(how, **env)
        self.assertEqual(run.returncode, -number, run.stderr)
        message, stack = self.recorded()
        self.assertRegex(message, "^" + text)
        self.assertIn(stack, run.stderr.decode(errors="replace"))
        return stack

    def test_an_exception_with_the_stack_where_it_was_thrown(self):
        run = self.run_it("throw")
        self.assertEqual(run.returncode, 1)
        message, stack = self.recorded()
        self.assertEqual(message, 'std::runtime_error: loss is "NaN"\nat step 7 \ufffd \u00e4')
        lines = stack.splitlines()
        self.assertEqual(lines[0], "Stack (most recent call last):")
        self.assertRegex(lines[-3], DEEP)
        self.assertRegex(stack, r"(?s)M_invoke.*throw_deep.*\n  \.\.\. \d more of the same\n")
        self.assertNotRegex(stack, "__cxa_throw|_Unwind|muster_comm_watch|_start")
        self.assertIn(b"trainer::throw_deep(int)", run.stderr)

    def test_a_nested_exception_names_its_cause(self):
        self.run_it("nested")
        message, stack = self.recorded()
        self.assertEqual(message, "std::runtime_error: cannot load")
        self.assertTrue(stack.endswith("\n  caused by std::out_of_range: map::at\n"), stack)

    def test_an_exception_that_is_no_exception_class(self):
        self.run_it("value")
        self.assertEqual(self.recorded()[0], "an exception of type int")

    def test_our_own_errors_name_their_code_and_ranks(self):
        self.run_it("error")
        message, stack = self.recorded()
        self.assertEqual(
            message,
            "muster::comm::ErrorException: all_reduce #128: rank 3 has not come "
            "[timeout; ranks 3, 5]",
        )
        self.assertIn("trainer::fail_with_our_error()", stack)
        self.assertEqual(self.comm_error(), "timeout")
        self.run_it("outer")
        self.assertEqual(self.recorded()[0], "std::runtime_error: epoch 3 failed")
        self.assertEqual(self.comm_error(), "timeout")
        self.run_it("throw")
        self.assertIsNone(self.comm_error())

    def test_who_catches_its_exceptions_records_nothing(self):
        for how, code in (("caught", 0), ("code", 5), ("pthread_exit", 0), ("child", 0)):
            run = self.run_it(how)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertFalse(os.path.exists(self.path("error.json")), how)

    def test_an_exception_that_ends_the_program_elsewhere(self):
        for how in ("thread_throws", "noexcept"):
            stack = self.died(how, signal.SIGABRT, "std::runtime_error: loss")
            self.assertRegex(stack, DEEP + "\nstd::runtime_error")
            self.assertNotIn("terminate", stack)

    def test_threads_that_throw_together_make_one_report(self):
        for _ in range(10):
            stack = self.died("threads_throw", signal.SIGABRT, r"std::runtime_error: thread \d$")
            told = re.findall(r"std::runtime_error: thread (\d)", stack)
            self.assertEqual(set(re.findall(r"throw_as<(\d)>", stack)), set(told), stack)
            self.assertEqual(len(told), 1)

    def test_an_exception_whose_text_cannot_be_had_is_told_by_its_type(self):
        for how, code, kind, place in (
            ("full_heap", 1, "std::bad_alloc", "fill_the_heap"),
            ("mute", -signal.SIGABRT, "trainer::Mute", "throw_mute"),
            ("mute_noexcept", -signal.SIGABRT, "trainer::Mute", "throw_mute"),
        ):
            with self.subTest(how):
                begun = time.monotonic()
                run = self.run_it(how)
                self.assertEqual(run.returncode, code, run.stderr)
                message, stack = self.recorded()
                self.assertEqual(message, "an exception of type " + kind)
                self.assertIn(place, stack)
                self.assertLess(time.monotonic() - begun, 8)  # nobody is waited for

    def test_each_fatal_signal_says_why_and_where(self):
        for how, number, text, place in (
            ("segv", signal.SIGSEGV, "SIGSEGV: nothing is mapped at address 0x0$", "5Model4step"),
            ("abort", signal.SIGABRT, "SIGABRT: abort[(][)] was called$", "abort"),
            ("assert", signal.SIGABRT, "SIGABRT: .*`how.empty[(][)]' failed.$", "__assert_fail"),
            ("bus", signal.SIGBUS, "SIGBUS: no memory behind the mapping", "touch_missing_memory"),
            ("fpe", signal.SIGFPE, "SIGFPE: whole number divided by zero$", "divide"),
            ("trap", *TRAP, ""),
            ("breakpoint", signal.SIGTRAP, "SIGTRAP: a breakpoint", "stop_at_breakpoint"),
            ("null_call", signal.SIGSEGV, "SIGSEGV: nothing is mapped at", "jump_nowhere"),
        ):
            with self.subTest(how):
                self.assertIn(place, self.died(how, number, text))

    def test_a_full_stack_is_told_from_another_one(self):
        stack = self.died("overflow", signal.SIGSEGV, "SIGSEGV: the stack is full: ")
        self.assertRegex(stack, r"overflow.*\n  \.\.\. \d+ more of the same\n")

    def test_a_crash_while_the_stack_is_read_leaves_what_is_known(self):
        self.assertIn("break_the_stack", self.died("broken_stack", signal.SIGSEGV, "SIGSEGV: "))

    def test_a_crash_while_an_exception_is_asked_for_its_text(self):
        self.assertIn("sneaky_text", self.died("sneaky", signal.SIGSEGV, "SIGSEGV: "))

    def test_threads_that_crash_together_make_one_report(self):
        for _ in range(10):
            stack = self.died("threads", signal.SIGSEGV, r"SIGSEGV: .*, in thread \d+ \(loader\)$")
            self.assertEqual(stack.count("5Model4step"), 1)

    def test_a_handler_that_was_there_before_is_called_after(self):
        for how, number in (
            ("segv", signal.SIGSEGV),
            ("abort", signal.SIGABRT),
            ("breakpoint", signal.SIGTRAP),
        ):
            self.died(how, number, "SIG", PREVIOUS="1")
            run = self.run_it(how, PREVIOUS="1")
            self.assertEqual(run.stdout, b"the handler before was called\n")

    def test_a_signal_from_somebody_else_names_him(self):
        environment = self.environment(TORCHELASTIC_ERROR_FILE=self.path("error.json"))
        run = subprocess.Popen(
            [RECORDED, "wait"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        run.stdout.readline()
        run.send_signal(signal.SIGABRT)
        run.communicate(timeout=harness.PATIENCE)
        self.assertEqual(run.returncode, -signal.SIGABRT)
        self.assertEqual(self.recorded()[0], f"SIGABRT: sent by process {os.getpid()}")

    def test_without_a_file_only_stderr_tells(self):
        for file in (None, "no/such/folder/error.json"):
            run = self.run_it("throw", file=file)
            self.assertEqual(run.returncode, 1)
            self.assertIn(b"trainer::throw_deep(int)", run.stderr)
            run = self.run_it("segv", file=file)
            self.assertEqual(run.returncode, -signal.SIGSEGV)
            self.assertIn(b"SIGSEGV: nothing is mapped at address 0x0\n", run.stderr)


class Launched(MusterTest):
    """The whole way into muster's report and summary."""

    def fails(self, code, how, ranks=2):
        worker = self.script(f'[ $RANK = 1 ] && exec "{RECORDED}" {how}; exec sleep 600')
        summary = self.path("s.json")
        run = self.muster("--summary", summary, "--nproc-per-node", ranks, "--no-python", worker)
        self.assert_code(run, code)
        with open(summary) as file:
            found = json.load(file)
        failure = next(
            one for one in (found["root_cause"], *found["other_causes"]) if one["rank"] == 1
        )
        self.assertIn("rank 1", run.err)
        self.assertEqual(failure["excerpt_source"], "error file")
        return failure, run.err, found["root_cause"]

    def test_an_error_of_the_library_blames_the_rank_that_did_not_come(self):
        failure, report, root = self.fails(1, "error", ranks=6)
        self.assertEqual((failure["kind"], failure["blames"]), ("collective_timeout", "3"))
        self.assertTrue(failure["victim"])
        text = "muster::comm::ErrorException: all_reduce #128: rank 3 has not come"
        self.assertTrue(failure["message"].startswith(text), failure["message"])
        self.assertIn("trainer::fail_with_our_error() in", "\n".join(failure["excerpt"]))
        self.assertEqual((root["rank"], root["kind"]), (3, "hung"))
        for part in (text, "rank 1 waited for it in vain", "rank 1 (waited for rank 3"):
            self.assertIn(part, report)

    def test_an_exception_of_any_other_kind(self):
        cause, _, root = self.fails(1, "throw")
        self.assertEqual(cause["kind"], "cpp_exception")
        self.assertEqual(cause, root)

    def test_a_crash(self):
        cause, report, _ = self.fails(128 + signal.SIGSEGV, "segv")
        self.assertEqual(cause["kind"], "segfault")
        self.assertRegex(cause["message"], "SIGSEGV.*: nothing is mapped at address 0x0$")
        self.assertIn("nothing is mapped at address 0x0", report)
        # Demangled, which the crashing process could not do.
        self.assertRegex(report, r"trainer::Model::step\(int\) in recorded\+0x[0-9a-f]+")

    def test_an_exception_of_another_thread(self):
        cause, report, _ = self.fails(128 + signal.SIGABRT, "thread_throws")
        self.assertEqual(cause["kind"], "cpp_exception")
        self.assertIn('std::runtime_error: loss is "NaN"', cause["message"])
        self.assertTrue(re.search(DEEP, report), report)


if __name__ == "__main__":
    harness.main()
