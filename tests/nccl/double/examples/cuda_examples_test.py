# SPDX-License-Identifier: Apache-2.0
"""The CUDA examples: on the test double they do what a GPU would; without a driver they say so."""

import glob
import os
import re

import harness
from harness import MusterTest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
BUILD = os.environ["MUSTER_BUILD"]
DOUBLES = os.environ["DOUBLES"]
ON_DOUBLE = os.path.join(DOUBLES, "examples")
ON_GPU = os.path.join(BUILD, "examples", "cuda")
DATA = ("--data", os.path.join(ROOT, "examples", "pytorch_ddp", "digits.csv.gz"))
EPOCH = re.compile(r"epoch (\d+)  loss ([\d.]+)  test accuracy ([\d.]+)%")
LINE = re.compile(
    r"^.*?(\d+) +(\d+) +float32 +sum +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)$", re.M
)
LONG = 200  # seconds; with sanitizers on two busy cores
ROUNDING = 1e-3
NO_DRIVER = re.compile(r"\A[^\n]*this machine has no NVIDIA driver[^\n]*\n\Z")


class CudaExamplesTest(MusterTest):
    def run_program(self, program, ranks, *options, variables=None, code=0):
        run = self.muster("--nproc-per-node", ranks, program, *options, seconds=LONG, env=variables)
        self.assert_code(run, code)
        return run

    def on_double(self, name, ranks, *options, **others):
        variables = {
            "MUSTER_CUDART_LIBRARY": os.path.join(DOUBLES, "libcudart_double.so"),
            "MUSTER_NCCL_LIBRARY": os.path.join(DOUBLES, "libnccl_double.so"),
            **others.pop("variables", {}),
        }
        program = os.path.join(ON_DOUBLE, f"{name}_double")
        return self.run_program(program, ranks, *options, variables=variables, **others)

    def epochs(self, run):
        return [(float(loss), float(accuracy)) for _, loss, accuracy in EPOCH.findall(run.out)]

    def test_ddp_trains_the_same_network_as_on_gloo(self):
        options = (*DATA, "--epochs", 3)
        program = os.path.join(BUILD, "examples", "ddp_mlp")
        gloo = self.epochs(self.run_program(program, 1, *options))
        self.assertEqual(len(gloo), 3)
        for ranks in (1, 4):
            ours = self.epochs(self.on_double("ddp_mlp", ranks, *options))
            self.assertEqual(len(ours), 3)
            for (loss, accuracy), (other_loss, other_accuracy) in zip(ours, gloo):
                self.assertAlmostEqual(loss, other_loss, delta=ROUNDING)
                self.assertAlmostEqual(accuracy, other_accuracy, delta=1)  # per cent

    def test_ddp_refuses_a_batch_that_its_ranks_do_not_divide(self):
        run = self.on_double("ddp_mlp", 3, *DATA, "--batch", 56, code=1)
        self.assertIn("--batch does not divide by the number of ranks", run.err)

    def test_ping_measures_each_size_and_checks_its_result(self):
        run = self.on_double("ping", 3, "--max", 1 << 16, "--iterations", 3)
        lines = LINE.findall(run.out)
        self.assertEqual([int(line[0]) for line in lines], [8 << i for i in range(14)])
        for size, count, time, algorithm, bus, wrong in lines:
            self.assertEqual(int(size), 4 * int(count))
            self.assertAlmostEqual(float(algorithm), int(size) / float(time) / 1000, delta=0.002)
            self.assertAlmostEqual(float(bus), float(algorithm) * 4 / 3, delta=0.002)
            self.assertEqual(wrong, "0")
        self.assertIn("average bus bandwidth", run.out)

    def test_without_a_driver_they_say_so_in_one_sentence(self):
        if not os.environ["CUDA_EXAMPLES"]:
            return  # no nvcc: the test "cuda: tests" says so
        if glob.glob("/dev/nvidia[0-9]*"):
            return  # there is a driver: "gpu: check" runs them
        for name in ("ddp_mlp", "ping"):
            run = self.run_program(os.path.join(ON_GPU, f"{name}_cuda"), 1, code=1)
            log = re.search(r"^ +logs +(\S+stderr.log)$", run.err, re.M)
            with open(log.group(1)) as file:
                self.assertRegex(file.read(), NO_DRIVER)

    def test_a_driver_that_is_too_old_is_told_with_both_versions(self):
        run = self.on_double("ping", 1, variables={"DOUBLE_DRIVER_VERSION": "12020"}, code=1)
        self.assertIn("the NVIDIA driver is too old: it knows CUDA 12.2", run.err)

    def test_each_is_at_most_200_lines_and_says_how_it_is_started(self):
        names = glob.glob(os.path.join(ROOT, "examples", "cuda", "*.cu"))
        self.assertEqual(len(names), 2)
        for name in names:
            with open(name) as file:
                text = file.read()
            self.assertLessEqual(text.count("\n"), 200, name)
            self.assertIn("muster --nproc-per-node gpu", text.split("#include")[0], name)


if __name__ == "__main__":
    harness.main()
