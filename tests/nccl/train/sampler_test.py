# SPDX-License-Identifier: Apache-2.0
"""The sampler's answers against those of a real PyTorch, for many sizes, seeds and epochs."""

import itertools
import os
import subprocess
import sys
import unittest

try:
    import torch
    from torch.utils.data import DistributedSampler
except ImportError as error:
    print(f"SKIPPED: no PyTorch here ({error})")
    sys.exit(77)

ANSWERS = os.path.join(os.environ["MUSTER_BUILD"], "tests", "nccl", "train", "sampler_answers")
SEEDS = (0, 1, 42, 2**31, 2**32 - 1, 2**32 + 7, 2**62 + 11, -1, -12345)


def answers(questions):
    done = subprocess.run(
        [ANSWERS], input="\n".join(questions), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(questions), f"{len(questions)} questions, {len(lines)} answers"
    return [[int(number) for number in line.split()] for line in lines]


class Sampler(unittest.TestCase):
    def test_permutations_are_those_of_randperm(self):
        cases = list(itertools.product((0, 1, 2, 3, 7, 64, 624, 625, 1797, 10007), SEEDS))
        cases += [(1_000_003, 5), (300_000, -7)]
        ours = answers([f"permutation {n} {seed}" for n, seed in cases])
        for (n, seed), numbers in zip(cases, ours):
            generator = torch.Generator()
            generator.manual_seed(seed)
            theirs = torch.randperm(n, generator=generator).tolist()
            self.assertEqual(theirs, numbers, f"{n} numbers, seed {seed}")

    def test_partitions_are_those_of_the_distributed_sampler(self):
        cases = itertools.product(
            (0, 1, 2, 5, 10, 100, 101, 1400),
            (1, 2, 3, 4, 7, 16),
            (False, True),
            (0, 3, 2**32 + 1),
            (False, True),
            (0, 1, 9),
        )
        questions, theirs = [], []
        for size, replicas, shuffle, seed, drop_last, epoch in cases:
            for rank in sorted({0, replicas // 2, replicas - 1}):
                sampler = DistributedSampler(
                    range(size), replicas, rank, shuffle=shuffle, seed=seed, drop_last=drop_last
                )
                sampler.set_epoch(epoch)
                theirs.append(list(sampler))
                self.assertEqual(len(theirs[-1]), len(sampler))
                numbers = (size, replicas, rank, int(shuffle), seed, int(drop_last), epoch)
                questions.append("sampler " + " ".join(map(str, numbers)))
        for question, expected, ours in zip(questions, theirs, answers(questions)):
            self.assertEqual(expected, ours, question)


if __name__ == "__main__":
    print("PyTorch", torch.__version__)
    unittest.main()
