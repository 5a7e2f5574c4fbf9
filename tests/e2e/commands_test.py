# SPDX-License-Identifier: Apache-2.0
"""muster status, logs and view, asked of runs that live, ended, or were killed."""

import json
import os
import re
import signal
import time
import urllib.request

import harness
from harness import MUSTER, MusterTest, wait_until
from nodes import NodesTest
from pty_terminal import Terminal

ENDLESS = 'echo "rank $RANK is up"; exec sleep 600'


class CommandsTest(MusterTest):
    def ask(self, *words, seconds=harness.PATIENCE, **options):
        return self.muster(*words, seconds=seconds, **options)

    def default_base(self):
        return self.path("home", ".local", "state", "muster", "runs")

    def newest_folder(self):
        return os.path.realpath(os.path.join(self.default_base(), "latest"))

    def live_run(self, *options, script=ENDLESS, workers=2, **more):
        """A job whose workers have all said that they are up."""
        run = self.start("--nproc-per-node", workers, *options, self.script(script), **more)
        for rank in range(workers):
            run.wait_for_output(f"rank {rank} is up")
        return run

    def finished_run(self, script, *options, workers=2):
        run = self.muster("--nproc-per-node", workers, *options, self.script(script))
        return run, self.newest_folder()

    def stop(self, run):
        run.signal(signal.SIGTERM)
        run.wait()

    def kill_both(self, run):
        """Front and supervisor at the same moment, as the kernel does it when memory is short."""
        self.muster_was_killed = True
        supervisor = harness.children(run.pid)
        os.kill(run.pid, signal.SIGSTOP)
        for pid in [*supervisor, run.pid]:
            os.kill(pid, signal.SIGKILL)
        run.wait()

    def lines(self, run):
        return run.out.splitlines()

    # -- which run --------------------------------------------------------------------------------

    def test_a_live_run_is_found_and_asked_without_a_word(self):
        run = self.live_run()
        status = self.ask("status")
        self.assert_code(status, 0)
        self.assertTrue(status.out.startswith("RUNNING for "), status.out)
        self.assertIn("2 ranks run", status.out)
        self.assertRegex(status.out, r"(?m)^0-1 +running")
        self.assertNotIn("\033", status.out)
        self.stop(run)

    def test_the_address_file_is_the_owners_alone_and_goes_with_the_run(self):
        run = self.live_run()
        path = os.path.join(self.newest_folder(), "http")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        url = harness.read(path).decode().splitlines()[0]
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}$")
        self.stop(run)
        self.assertFalse(os.path.exists(path))

    def test_an_address_is_asked_with_its_token_and_refused_with_a_wrong_one(self):
        run = self.live_run()
        url = harness.read(os.path.join(self.newest_folder(), "http")).decode().splitlines()[0]
        status = self.ask("status", url, env={"HOME": self.path("tmp")})
        self.assert_code(status, 0)
        self.assertIn("2 ranks run", status.out)
        self.stop(run)
        gone = self.ask("status", url)
        self.assert_code(gone, 4)
        self.assertIn("refused", gone.err)
        self.assertNotIn("token", gone.err)

    def test_runs_are_named_by_folder_base_and_beginning(self):
        base = self.path("base")
        self.muster("--log-dir", base, "--rdzv-id", "job/one", "--standalone", self.script("exit 0"))
        _, other = self.finished_run("exit 0")
        folder = self.run_folder(base)
        for word in (folder, folder + "/", base):
            status = self.ask("status", "--json", word)
            self.assert_code(status, 0)
            self.assertEqual(json.loads(status.out)["log_dir"], folder)
        beginning = os.path.basename(other)[:6]
        self.assertEqual(json.loads(self.ask("status", "--json", beginning).out)["log_dir"], other)

    def test_what_is_no_run_says_what_to_do(self):
        none = self.ask("status")
        self.assert_code(none, 3)
        self.assertIn("there is no run in", none.err)
        for word, says in (
            (self.path("tmp"), "is not a run's folder"),
            ("nosuchrun", "there is no run 'nosuchrun'"),
            (self.script("exit 0"), "is a file"),
            ("./gone/run", "No such file"),
        ):
            for command in ("status", "logs", "view"):
                run = self.ask(command, word)
                self.assert_code(run, 3)
                self.assertIn(says, run.err)
        self.assert_code(self.ask("status", "--nonsense"), 2)

    # -- the command line -------------------------------------------------------------------------

    def test_a_script_of_a_commands_name_still_starts(self):
        self.script("echo it is I", name="status")
        for words in (["./status"], ["--", "./status"], ["run", "./status"]):
            run = self.muster(*words)
            self.assert_code(run, 0)
            self.assertIn("it is I", run.out)
        command = self.ask("status")
        self.assertIn("'status' is a command here; the file of that name starts as ./status", command.err)
        self.assertNotIn("it is I", command.out)

    def test_under_the_name_torchrun_there_are_no_commands(self):
        os.symlink(MUSTER, self.path("torchrun"))
        with open(self.path("status"), "w") as file:
            file.write("print('it is I')\n")
        run = self.muster("status", command=[self.path("torchrun")])
        self.assert_code(run, 0)
        self.assertIn("it is I", run.out)

    def test_help_is_printed_for_each(self):
        for command in ("status", "logs", "view"):
            run = self.ask(command, "--help")
            self.assert_code(run, 0)
            self.assertIn(f"usage: muster {command}", run.out)

    # -- status -----------------------------------------------------------------------------------

    FAILING = """
echo "step $RANK of 5"
[ "$RANK" = 1 ] && { echo 'Traceback (most recent call last):' >&2
  echo '  File "train.py", line 3, in <module>' >&2
  echo 'ValueError: no such batch' >&2; exit 1; }
exec sleep 600
"""

    def test_a_failure_stands_first_with_its_reason_hint_and_victims(self):
        run, folder = self.finished_run(self.FAILING, workers=4)
        self.assert_code(run, 1)
        status = self.ask("status")
        self.assert_code(status, 1)
        text = status.out
        self.assertTrue(text.startswith("FAILED after "), text)
        places = [text.index(word) for word in ("failure ", "hint ", "victims ", "ranks  ")]
        self.assertEqual(places, sorted(places))
        self.assertIn("ValueError: no such batch", text)
        self.assertIn("rank 1 on ", text)
        self.assertRegex(text, r"victims +ranks 0,2-3: stopped by muster")
        self.assertIn(os.path.join(folder, "attempt_0", "1", "stderr.log"), text)

    def test_json_is_the_same_from_the_run_and_from_its_folder(self):
        run = self.live_run("--max-restarts", 0)
        live = json.loads(self.ask("status", "--json").out)
        self.assertEqual(live["phase"], "running")
        self.stop(run)
        ended = self.ask("status", "--json")
        self.assert_code(ended, 1)
        over = json.loads(ended.out)
        self.assertEqual(over["outcome"], "stopped")
        self.assertEqual(set(live), set(over))
        for key in ("run_id", "host", "pid", "started_us", "world_size", "log_dir"):
            self.assertEqual(live[key], over[key])

    def test_ranks_are_told_one_by_one_when_asked(self):
        run = self.live_run(workers=3)
        status = self.ask("status", "--ranks", "0,2")
        self.assertRegex(status.out, r"(?m)^ +0 .*running")
        self.assertRegex(status.out, r"(?m)^ +2 .*running")
        self.assertNotRegex(status.out, r"(?m)^ +1 .*running")
        wrong = self.ask("status", "--ranks", "7")
        self.assert_code(wrong, 2)
        self.assertIn("0-2", wrong.err)
        self.stop(run)

    def test_a_killed_run_is_over_and_was_last_seen(self):
        run = self.live_run()
        self.kill_both(run)
        status = self.ask("status")
        self.assert_code(status, 1)
        self.assertTrue(status.out.startswith("KILLED after "), status.out)
        self.assertIn("muster was killed", status.out)
        self.assertRegex(status.out, r"(?m)^0-1 +lost")
        self.assertIn("last sign of life", status.out)
        logs = self.ask("logs")
        self.assert_code(logs, 0)
        self.assertEqual(sorted(self.lines(logs)), ["[0]: rank 0 is up", "[1]: rank 1 is up"])

    # -- logs -------------------------------------------------------------------------------------

    TALKING = 'for i in 1 2 3; do echo "out $RANK $i"; echo "err $RANK $i" >&2; done'

    def test_logs_print_all_ranks_with_their_prefix(self):
        self.finished_run(self.TALKING)
        logs = self.ask("logs")
        self.assert_code(logs, 0)
        wanted = [f"[{r}]: {s} {r} {i}" for r in (0, 1) for s in ("out", "err") for i in (1, 2, 3)]
        self.assertEqual(sorted(self.lines(logs)), sorted(wanted))
        for rank in (0, 1):
            of_one = [line for line in self.lines(logs) if f"out {rank}" in line]
            self.assertEqual(of_one, [f"[{rank}]: out {rank} {i}" for i in (1, 2, 3)])

    def test_logs_are_chosen_by_rank_stream_and_number_of_lines(self):
        self.finished_run(self.TALKING, workers=3)
        self.assertEqual(
            self.lines(self.ask("logs", "-r", "2", "-s", "stdout", "-n", "2")), ["out 2 2", "out 2 3"]
        )
        self.assertEqual(
            self.lines(self.ask("logs", "-r", "0-1", "-s", "stderr", "-n", "1")),
            ["[0]: err 0 3", "[1]: err 1 3"],
        )
        self.assertEqual(self.ask("logs", "-n", "0").out, "")
        none = self.ask("logs", "-r", "5")
        self.assertNotEqual(none.code, 0)
        self.assertEqual(none.out, "")
        none = self.ask("logs", "-a", "4")
        self.assert_code(none, 3)
        self.assertIn("there is no attempt 4; there are 0", none.err)

    def test_many_lines_come_whole_and_in_order(self):
        self.finished_run('seq -f "%.0f $RANK" 1 30000')
        logs = self.ask("logs")
        for rank in ("0", "1"):
            numbers = [
                int(line.split()[1]) for line in self.lines(logs) if line.startswith(f"[{rank}]")
            ]
            self.assertEqual(numbers, list(range(1, 30001)))
        tail = self.lines(self.ask("logs", "-r", "0", "-n", "12000"))
        self.assertEqual(tail, [f"{n} 0" for n in range(18001, 30001)])

    def test_a_last_line_without_newline_is_printed_once(self):
        self.finished_run("echo one; printf two", workers=1)
        self.assertEqual(self.lines(self.ask("logs")), ["one", "two"])
        self.assertEqual(self.lines(self.ask("logs", "-n", "1")), ["two"])
        self.assertEqual(self.lines(self.ask("logs", "--since", "1h")), ["one", "two"])

    def test_raw_is_the_bytes_as_they_were_written(self):
        self.finished_run(r"printf 'a\rb\033[31mc\377\n\nno newline'", workers=1)
        path = os.path.join(self.newest_folder(), "attempt_0", "0", "stdout.log")
        logs = self.ask("logs", "--raw")
        self.assert_code(logs, 0)
        self.assertEqual(harness.read(logs.out_path), harness.read(path))
        self.assertEqual(harness.read(path), b"a\rb\033[31mc\377\n\nno newline")

    def test_json_lines_have_their_place(self):
        self.finished_run(self.TALKING, workers=1)
        lines = [json.loads(line) for line in self.lines(self.ask("logs", "--json", "-s", "stdout"))]
        self.assertEqual([line["text"] for line in lines], ["out 0 1", "out 0 2", "out 0 3"])
        self.assertEqual([line["offset"] for line in lines], [0, 8, 16])
        self.assertEqual([line["number"] for line in lines], [0, 1, 2])
        for line in lines:
            self.assertEqual((line["attempt"], line["rank"], line["stream"]), (0, 0, "stdout"))
            self.assertLess(abs(line["time_us"] / 1e6 - time.time()), 600)

    def test_since_leaves_out_what_came_before(self):
        self.finished_run('echo early; sleep 2.5; date -u +%Y-%m-%dT%H:%M:%SZ > "$T/mark"; echo late', workers=1)
        mark = self.file("mark").strip()
        # The mark has whole seconds, so the early line is more than one second before it.
        self.assertEqual(self.lines(self.ask("logs", "--since", mark)), ["late"])
        self.assertEqual(self.lines(self.ask("logs", "--since", "1h")), ["early", "late"])

    RESTARTING = """
echo "attempt $TORCHELASTIC_RESTART_COUNT rank $RANK is up"
if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
  while [ ! -e "$T/go" ]; do sleep 0.02; done
  [ "$RANK" = 1 ] && exit 3
  exec sleep 600
fi
for i in $(seq 200); do echo "line $i of $RANK"; done
printf 'no newline %s' "$RANK"
"""

    def test_follow_goes_through_restarts_to_the_very_end(self):
        run = self.start("--nproc-per-node", 2, "--max-restarts", 1, self.script(self.RESTARTING))
        run.wait_for_output("rank 1 is up")
        run.wait_for_output("rank 0 is up")
        follow = self.start("logs", "-f")
        follow.wait_for_output("attempt 0 rank 0 is up")
        follow.wait_for_output("attempt 0 rank 1 is up")
        with open(self.path("go"), "w"):
            pass
        run.wait()
        follow.wait()
        self.assert_code(run, 0)
        self.assert_code(follow, 0)
        wanted = [f"[{r}]: attempt {a} rank {r} is up" for a in (0, 1) for r in (0, 1)]
        wanted += [f"[{r}]: line {i} of {r}" for r in (0, 1) for i in range(1, 201)]
        wanted += [f"[{r}]: no newline {r}" for r in (0, 1)]
        self.assertEqual(sorted(self.lines(follow)), sorted(wanted))

    def test_follow_of_a_run_without_http_reads_its_files(self):
        run = self.live_run(
            "--http", "off",
            script='echo "rank $RANK is up"; while [ ! -e "$T/go" ]; do sleep 0.02; done; echo "bye $RANK"',
        )
        self.assertFalse(os.path.exists(os.path.join(self.newest_folder(), "http")))
        follow = self.start("logs", "-f")
        follow.wait_for_output("rank 1 is up")
        with open(self.path("go"), "w"):
            pass
        follow.wait()
        run.wait()
        self.assert_code(follow, 0)
        self.assertEqual(
            sorted(self.lines(follow)),
            ["[0]: bye 0", "[0]: rank 0 is up", "[1]: bye 1", "[1]: rank 1 is up"],
        )

    def test_follow_can_choose_lines(self):
        run = self.live_run(
            script='echo "rank $RANK is up"; while [ ! -e "$T/go" ]; do sleep 0.02; done; '
            'for i in 1 2 3; do echo "Loss $i"; echo "other $i"; done',
            workers=1,
        )
        follow = self.start("logs", "-f", "-g", "is up|^loss [23]", "-i")
        follow.wait_for_output("rank 0 is up")
        with open(self.path("go"), "w"):
            pass
        follow.wait()
        run.wait()
        self.assert_code(follow, 0)
        self.assertEqual(self.lines(follow), ["rank 0 is up", "Loss 2", "Loss 3"])

    def test_follow_of_a_run_that_is_killed_ends(self):
        run = self.live_run()
        follow = self.start("logs", "-f")
        follow.wait_for_output("rank 1 is up")
        follow.wait_for_output("rank 0 is up")
        self.kill_both(run)
        follow.wait()
        self.assert_code(follow, 0)
        self.assertEqual(sorted(self.lines(follow)), ["[0]: rank 0 is up", "[1]: rank 1 is up"])

    def test_follow_ends_with_130_by_ctrl_c(self):
        run = self.live_run()
        follow = self.start("logs", "-f")
        follow.wait_for_output("rank 1 is up")
        follow.signal(signal.SIGINT)
        follow.wait()
        self.assert_code(follow, 130)
        self.stop(run)

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.finished_run('seq -f "%.0f $RANK" 1 200000', workers=1)
        script = self.path("pipe.sh")
        with open(script, "w") as file:
            file.write(f"{{ {MUSTER} logs; echo code $? >&2; }} | head -n 1\n")
        shell = self.muster(script, command=["/bin/bash"])
        self.assertEqual(shell.out, "1 0\n")
        self.assertEqual(shell.err, "code 0\n")

    def test_grep_finds_lines_with_context_and_says_so_by_its_code(self):
        self.finished_run('seq -f "%.0f of $RANK" 1 50')
        found = self.ask("logs", "--grep", "^(7|9) ", "-r", "1")
        self.assert_code(found, 0)
        self.assertEqual(self.lines(found), ["[1]: 7 of 1", "[1]: 9 of 1"])
        context = self.ask("logs", "--grep", "OF 0$", "-i", "-C", "1", "--json", "-r", "0")
        self.assertEqual(len([1 for line in self.lines(context) if '"context"' not in line]), 50)
        around = self.ask("logs", "-g", "30 of 0", "-F", "-C", "1")
        self.assertEqual(
            self.lines(around), ["[0]- 29 of 0", "[0]: 30 of 0", "[0]- 31 of 0"]
        )
        nothing = self.ask("logs", "--grep", "no such line")
        self.assert_code(nothing, 1)
        self.assertEqual(nothing.out, "")
        wrong = self.ask("logs", "--grep", "(")
        self.assert_code(wrong, 2)
        self.assertIn("--grep '('", wrong.err)

    # -- view -------------------------------------------------------------------------------------

    def view(self, *words):
        run = self.start("view", "--json", *words)
        run.wait_for_output("\n")
        return run, json.loads(run.out)

    def get(self, url, path):
        token = url.split("token=")[1]
        request = urllib.request.Request(
            url.split("?")[0].rstrip("/") + path, headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=harness.PATIENCE) as answer:
            return answer.read().decode()

    def test_view_serves_a_finished_run_until_ctrl_c(self):
        _, folder = self.finished_run("echo hello; exit 0")
        view, told = self.view()
        self.assertEqual((told["run_dir"], told["live"]), (folder, False))
        status = json.loads(self.get(told["url"], "/status"))
        self.assertEqual(status["outcome"], "succeeded")
        self.assertEqual(self.get(told["url"], "/api/v1/logs/0/1/stdout"), "hello\n")
        self.assertIn("<html", self.get(told["url"], "/").lower())
        view.signal(signal.SIGINT)
        view.wait()
        self.assert_code(view, 0)

    def test_view_serves_a_killed_run(self):
        run = self.live_run()
        self.kill_both(run)
        view, told = self.view()
        job = json.loads(self.get(told["url"], "/api/v1/job"))
        self.assertEqual((job["live"], job["outcome"], job["phase"]), (False, None, "ended"))
        self.assertIn("was killed", job["summary"])
        self.assertEqual(self.get(told["url"], "/api/v1/logs/0/0/stdout"), "rank 0 is up\n")
        view.signal(signal.SIGTERM)
        self.assert_code(view.wait(), 0)

    def test_view_of_a_live_run_follows_it(self):
        run = self.live_run()
        view, told = self.view()
        self.assertTrue(told["live"])
        self.assertEqual(json.loads(self.get(told["url"], "/status"))["phase"], "running")
        self.stop(run)
        wait_until(
            lambda: json.loads(self.get(told["url"], "/status"))["outcome"] == "stopped",
            "the view knows that the run was stopped",
        )
        view.signal(signal.SIGINT)
        self.assert_code(view.wait(), 0)

    def test_view_says_that_its_port_is_taken(self):
        self.finished_run("exit 0")
        first, told = self.view()
        port = re.search(r":(\d+)/", told["url"]).group(1)
        second = self.ask("view", "--http", port)
        self.assert_code(second, 1)
        self.assertIn("address already in use", second.err.lower())
        first.signal(signal.SIGINT)
        first.wait()

    def test_view_opens_the_browser_without_showing_it_the_token_on_a_command_line(self):
        self.finished_run("exit 0")
        self.script('echo "$@" > "$T/words"; cat "$1" > "$T/page"; echo >> "$T/page"', name="browser")
        view = self.start("view", "--open", env={"BROWSER": self.path("browser")})
        page = self.wait_for_file("page")
        view.wait_for_output("token=")
        token = view.out.split("token=")[1].strip()
        self.assertIn(token, page)
        self.assertNotIn(token, self.file("words"))
        view.signal(signal.SIGINT)
        self.assert_code(view.wait(), 0)

    # -- watch ------------------------------------------------------------------------------------

    def test_watch_without_a_terminal_prints_changes_and_ends_with_the_job(self):
        run = self.live_run()
        watch = self.start("status", "--watch")
        watch.wait_for_output("RUNNING")
        self.stop(run)
        watch.wait()
        self.assert_code(watch, 1)
        lines = self.lines(watch)
        self.assertRegex(lines[0], r"^\d\d:\d\d:\d\d RUNNING for ")
        self.assertRegex(lines[-1], r"^\d\d:\d\d:\d\d STOPPED after ")

    def test_watch_is_a_page_that_gives_the_terminal_back(self):
        run = self.live_run()
        terminal = Terminal(self, "status", "--watch")
        terminal.wait_for("RUNNING for ")
        terminal.wait_for("q quits")
        self.assertTrue(terminal.raw())
        terminal.resize(8, 40)
        terminal.wait_for("\u2191 \u2193 move (1-7 of")
        terminal.send(b"q")
        self.assertEqual(terminal.wait(), 0)
        terminal.check_given_back()
        self.stop(run)

    def test_watch_gives_the_terminal_back_when_it_is_interrupted_killed_or_crashes(self):
        run = self.live_run()
        for number, code in (
            (signal.SIGINT, 130),
            (signal.SIGTERM, 143),
            (signal.SIGHUP, 129),
            (signal.SIGSEGV, None),
        ):
            with self.subTest(signal=number):
                terminal = Terminal(self, "status", "--watch", ASAN_OPTIONS="handle_segv=0:allow_user_segv_handler=1")
                terminal.wait_for("RUNNING for ")
                os.kill(terminal.pid, number)
                ended = terminal.wait()
                if code is not None:
                    self.assertEqual(ended, code)
                terminal.check_given_back()
        self.stop(run)

    def test_watch_can_be_stopped_and_continued(self):
        run = self.live_run()
        terminal = Terminal(self, "status", "--watch")
        terminal.wait_for("RUNNING for ")
        terminal.send(b"\x1a")  # Ctrl-Z
        wait_until(lambda: harness.process_state(terminal.pid) == "T", "it is stopped")
        terminal.check_given_back()
        terminal.forget()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_for("RUNNING for ")
        self.assertTrue(terminal.raw())
        terminal.send(b"q")
        self.assertEqual(terminal.wait(), 0)
        self.stop(run)

    def test_watch_shows_the_end_of_the_job(self):
        run = self.live_run()
        terminal = Terminal(self, "status", "--watch")
        terminal.wait_for("RUNNING for ")
        self.stop(run)
        terminal.wait_for("STOPPED after ")
        terminal.send(b"q")
        self.assertEqual(terminal.wait(), 1)


class SeveralNodesTest(NodesTest):
    """Asked on the coordinator's machine, whose name the command has too."""

    WORKER = (
        "sh", "-c",
        'echo "rank $RANK is up on $NODE"; while [ ! -e "$T/go" ]; do sleep 0.02; done; echo "bye $RANK"',
    )

    def ask(self, *words):
        return self.start(*words, command=[*self.as_host("a"), MUSTER])

    def test_who_is_waited_for(self):
        a = self.agent("a", workers=2)
        a.wait_for_event("nodes_awaited")
        status = self.ask("status", a.run_folder).wait()
        self.assert_code(status, 0)
        self.assertTrue(status.out.startswith("WAITING for "), status.out)
        self.assertRegex(status.out, r"(?m)^missing +1 node$")
        a.signal(signal.SIGTERM)
        a.run.wait()

    def test_status_and_logs_are_those_of_all_nodes(self):
        a, b = self.pair(worker=self.WORKER)
        for rank in (0, 1):
            a.wait_for_event("worker_spawned", rank=rank)
        follow = self.ask("logs", "-f", a.run_folder)
        for line in ("[0]: rank 0 is up on a", "[1]: rank 1 is up on b"):
            follow.wait_for_output(line)
        status = self.ask("status", a.run_folder).wait()
        self.assert_code(status, 0)
        self.assertIn("2 ranks run on 2 nodes", status.out)
        logs = self.ask("logs", "--rank", "1", "--raw", a.run_folder).wait()
        self.assert_code(logs, 0)
        self.assertEqual(logs.out, "rank 1 is up on b\n")
        with open(self.path("go"), "w"):
            pass
        self.wait_for_end((a, b), 0)
        self.assert_code(follow.wait(), 0)
        self.assertEqual(
            sorted(follow.out.splitlines()),
            ["[0]: bye 0", "[0]: rank 0 is up on a", "[1]: bye 1", "[1]: rank 1 is up on b"],
        )


if __name__ == "__main__":
    harness.main()
