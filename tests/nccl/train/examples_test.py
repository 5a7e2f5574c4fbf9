# SPDX-License-Identifier: Apache-2.0
"""The C++ examples under the real muster: all ways to train are the same training."""

import json
import os
import re
import signal

import harness
from harness import MusterTest, wait_until
from tensors import read_tensors

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
EXAMPLES = os.path.join(os.environ["MUSTER_BUILD"], "examples")
DATA = os.path.join(ROOT, "examples", "pytorch_ddp", "digits.csv.gz")
EPOCH = re.compile(r"epoch (\d+)  loss ([\d.]+)  test accuracy ([\d.]+)%")
STEP = re.compile(r"step (\d+)  loss ([\d.]+)")
# Seconds; with sanitizers on two busy cores.
LONG = 120
# The order in which numbers are added up differs, and training makes small differences larger.
ROUNDING = 1e-3


def descendants(pid):
    found = harness.children(pid)
    for child in list(found):
        found += descendants(child)
    return found


class ExamplesTest(MusterTest):
    def command(self, program, ranks, options=(), launcher=()):
        words = ["--nproc-per-node", ranks, *launcher, os.path.join(EXAMPLES, program)]
        return [*words, *([] if program == "ping" else ["--data", DATA]), *options]

    def run_example(self, program, ranks, *options, launcher=(), code=0):
        run = self.muster(*self.command(program, ranks, options, launcher), seconds=LONG)
        self.assert_code(run, code)
        return run

    def epochs(self, program, ranks, *options):
        """[(loss, accuracy)] by epoch."""
        run = self.run_example(program, ranks, *options)
        lines = EPOCH.findall(run.out)
        first = int(lines[0][0])
        self.assertEqual([int(line[0]) for line in lines], list(range(first, first + len(lines))))
        return [(float(loss), float(accuracy)) for _, loss, accuracy in lines]

    def assert_same_training(self, ours, others):
        self.assertEqual(len(ours), len(others))
        for (loss, accuracy), (other_loss, other_accuracy) in zip(ours, others):
            self.assertAlmostEqual(loss, other_loss, delta=ROUNDING)
            self.assertAlmostEqual(accuracy, other_accuracy, delta=1)  # per cent

    def test_ddp_converges_and_equals_one_process_to_rounding(self):
        one = self.epochs("ddp_mlp", 1, "--save", self.path("one"))
        four = self.epochs("ddp_mlp", 4, "--save", self.path("four"))
        self.assertEqual(len(four), 8)
        self.assertLess(four[-1][0], 0.2)
        self.assertGreater(four[-1][1], 93)
        self.assert_same_training(one, four)
        ours, _ = read_tensors(self.path("one"))
        others, _ = read_tensors(self.path("four"))
        self.assertEqual(
            set(ours), {f"layer{i}.{part}" for i in range(4) for part in ("weight", "bias")}
        )
        for name, numbers in ours.items():
            self.assertEqual(len(numbers), len(others[name]))
            self.assertLess(max(abs(a - b) for a, b in zip(numbers, others[name])), ROUNDING, name)

    def test_ddp_with_other_batches_is_another_training(self):
        """What the comparisons here would say of a rank whose gradients are not averaged."""
        one = self.epochs("ddp_mlp", 1, "--epochs", 2)
        half = self.epochs("ddp_mlp", 1, "--epochs", 2, "--batch", 28)
        self.assertGreater(abs(one[1][0] - half[1][0]), 10 * ROUNDING)

    def test_sharded_training_equals_it_and_resumes_with_other_ranks(self):
        whole = self.epochs("ddp_mlp", 1, "--epochs", 5)
        folder = self.path("sharded")
        first = self.epochs("fsdp_mlp", 4, "--epochs", 3, "--checkpoint", folder)
        self.assert_same_training(first, whole[:3])
        with open(os.path.join(folder, "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual(manifest["metadata"], {"epoch": "2"})
        shards = sorted(name for name in os.listdir(folder) if name.startswith("shard-"))
        self.assertEqual(shards, sorted(shard["file"] for shard in manifest["shards"]))
        for shard in manifest["shards"]:
            read_tensors(os.path.join(folder, shard["file"]))
        # 4,810 parameters of a layer do not divide by three: the padding differs.
        rest = self.epochs(
            "fsdp_mlp", 3, "--epochs", 5, "--batch", 56 // 3 * 3, "--checkpoint", folder
        )
        self.assertEqual(len(rest), 2)

    def test_a_sharded_training_resumed_by_two_ranks_goes_on_as_it_was(self):
        whole = self.epochs("ddp_mlp", 1, "--epochs", 4)
        folder = self.path("sharded")
        self.epochs("fsdp_mlp", 4, "--epochs", 2, "--checkpoint", folder)
        rest = self.epochs("fsdp_mlp", 2, "--epochs", 4, "--checkpoint", folder)
        self.assert_same_training(rest, whole[2:])

    def test_a_missing_shard_is_named(self):
        folder = self.path("sharded")
        self.epochs("fsdp_mlp", 2, "--epochs", 1, "--checkpoint", folder)
        os.remove(os.path.join(folder, "shard-1-1.safetensors"))
        run = self.run_example("fsdp_mlp", 2, "--checkpoint", folder, code=1)
        self.assertIn("shard-1-1.safetensors: this shard is missing", run.err)

    def test_a_pipeline_equals_one_process(self):
        whole = self.epochs("pipeline_mlp", 1, "--epochs", 4)
        self.assert_same_training(whole, self.epochs("ddp_mlp", 1, "--epochs", 4))
        for ranks, micro_batches in ((2, 1), (3, 4), (4, 8)):
            ours = self.epochs(
                "pipeline_mlp", ranks, "--epochs", 4, "--micro-batches", micro_batches
            )
            self.assert_same_training(ours, whole)

    def test_tensor_parallel_training_equals_one_process(self):
        whole = self.epochs("ddp_mlp", 1, "--epochs", 4)
        for ranks in (1, 2, 4):
            self.assert_same_training(
                self.epochs("tensor_parallel_mlp", ranks, "--epochs", 4), whole
            )

    def steps(self, text):
        """{step: {losses}}: a step may be done twice, by two attempts."""
        losses = {}
        for step, loss in STEP.findall(text):
            losses.setdefault(int(step), set()).add(loss)
        return losses

    def test_a_killed_training_resumes_and_its_losses_go_on(self):
        unhurt = self.steps(self.run_example("fault_tolerant", 3, "--steps", 60, "--batch", 42).out)
        run = self.run_example(
            "fault_tolerant",
            3,
            "--steps",
            60,
            "--batch",
            42,
            "--checkpoint",
            self.path("ck"),
            "--die-at-step",
            37,
            "--die-rank",
            2,
            launcher=("--max-restarts", 1),
        )
        self.assertIn("after 1 restart", run.err)
        self.assertIn("resuming at step 30", run.out)
        self.assertEqual(self.steps(run.out), unhurt)
        self.assertEqual(list(unhurt), list(range(60)))
        _, metadata = read_tensors(self.path("ck"))
        self.assertEqual(metadata, {"step": "59"})

    def workers(self, run):
        program = os.path.join(EXAMPLES, "fault_tolerant").encode()
        return [
            pid
            for pid in descendants(run.pid)
            if harness.read_proc(pid, "cmdline").split(b"\0")[0] == program
        ]

    def test_wherever_a_kill_strikes_the_checkpoint_is_whole(self):
        options = ("--steps", 120, "--every", 1, "--checkpoint", self.path("ck"))
        unhurt = self.steps(self.run_example("fault_tolerant", 2, "--steps", 120).out)
        # The same failure each time, but each attempt comes further.
        launcher = ("--same-failure-limit", "2/10", "--max-restarts", 3)
        run = self.start(*self.command("fault_tolerant", 2, options, launcher))
        for resumed, strike in enumerate((10, 40, 80)):
            wait_until(lambda: max(self.steps(run.out), default=0) >= strike, f"step {strike}")
            # Rank 0, which writes the checkpoints, is the first that was started.
            os.kill(min(self.workers(run)), signal.SIGKILL)
            wait_until(lambda: run.out.count("resuming") == resumed + 1, "it resumes", LONG)
        self.assert_code(run.wait(LONG), 0)
        self.assertEqual(self.steps(run.out), unhurt)

    def test_ping_says_how_fast_the_ranks_talk(self):
        run = self.run_example("ping", 4, "--max", 1 << 16, "--iterations", 3)
        lines = re.findall(
            r"^.*?(\d+) +(\d+) +float32 +sum +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)$", run.out, re.M
        )
        self.assertEqual([int(line[0]) for line in lines], [8 << i for i in range(14)])
        for size, count, time, algorithm, bus, wrong in lines:
            self.assertEqual(int(size), 4 * int(count))
            self.assertAlmostEqual(float(algorithm), int(size) / float(time) / 1000, delta=0.002)
            self.assertAlmostEqual(float(bus), float(algorithm) * 1.5, delta=0.002)
            self.assertEqual(wrong, "0")
        self.assertIn("average bus bandwidth", run.out)

    def test_a_wrong_option_is_told_with_those_there_are(self):
        run = self.run_example("ddp_mlp", 2, "--epoch", 3, code=1)
        self.assertIn("cannot use --epoch; there are: --batch [56]", run.err)

    def test_each_example_is_at_most_200_lines(self):
        folder = os.path.join(ROOT, "examples")
        for name in os.listdir(folder):
            if name.endswith((".cc", ".cu")):
                with open(os.path.join(folder, name)) as file:
                    text = file.read()
                self.assertLessEqual(text.count("\n"), 200, name)
                self.assertIn("muster --nproc-per-node", text.split("#include")[0], name)


if __name__ == "__main__":
    harness.main()
