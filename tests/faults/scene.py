# SPDX-License-Identifier: Apache-2.0
"""Where an entry of the corpus is played: its program as a job of one node or of several."""

import contextlib
import ctypes
import glob
import importlib.util
import json
import os
import signal
import subprocess
import sys

import corpus
import harness
from harness import wait_until
from nodes import NodesTest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILT = os.path.join(os.environ.get("MUSTER_BUILD", ""), "tests", "faults")
MEMORY = "/sys/fs/cgroup/memory"
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")


def lacking(needs):
    """Why this machine cannot run an entry with such needs, "" if it can."""
    for need in needs.split(", ") if needs else []:
        if need == "root" and os.geteuid() != 0:
            return "it needs root"
        if need == "memory cgroup" and (os.geteuid() != 0 or not os.path.isdir(MEMORY)):
            return "it needs the memory controller of cgroup v1, and root"
        if need == "torch" and importlib.util.find_spec("torch") is None:
            return "this Python has no torch"
        if need == "chroot" and not os.path.isdir(os.path.join(harness.CACHE, "chroot-forky")):
            return "no PyTorch chroot; scripts/pytorch-chroot makes it"
        if need == "faketime" and not os.path.exists(FAKETIME):
            return "libfaketime is not installed"
        if need == "fuse" and not os.path.exists("/dev/fuse"):
            return "there is no /dev/fuse"
    return ""


class Scene:
    """What an entry's act() gets, once its job was started."""

    def __init__(self, test, fault):
        self.test = test
        self.fault = fault

    @property
    def nodes(self):
        return self.test.nodes

    def pid(self, rank):
        """Of a rank, once it has written it."""
        return int(self.test.wait_for_file(f"pid.{rank}"))


class SceneTest(NodesTest):
    def setUp(self):
        super().setUp()
        self.found = {}  # variables that the preparation adds

    def words(self, fault):
        """The workers' command."""
        interpreter = [sys.executable, "-u"] if fault.language == "py" else []
        if fault.language == "command":
            places = {"T": self.dir, "TOP": TOP, "HERE": HERE, "FAULTS": BUILT}
            return [word.format(**places) for word in fault.program.split()]
        name = "train.py" if fault.language == "py" else "train.sh"
        return [*interpreter, self.script(corpus.text_of(fault), name)]

    def variables(self, fault):
        here = {"FAULTS": BUILT, "HERE": HERE, "PYTHON": sys.executable}
        return {**here, **self.found, **fault.env}

    def start_one(self, fault):
        words = ["--nproc-per-node", fault.ranks, "--shutdown-timeout", 5]
        words += ["--summary", self.path("summary.json"), *fault.options]
        words += ["--log-dir", self.path("small" if fault.small_disk else "logs.a")]
        options = {"env": self.variables(fault)}
        return self.start(*words, "--no-python", *self.words(fault), **options)

    def start_nodes(self, fault):
        """Node a first, so that it is the coordinator's."""
        for number, name in enumerate("abc"[: fault.nodes]):
            if name in fault.absent:
                continue
            env = self.variables(fault)
            if name in fault.skew:
                env |= {"FAKETIME": f"{fault.skew[name]:+}s", "LD_PRELOAD": FAKETIME}
                env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
            words = ("--node-rank", number, "--shutdown-timeout", 5, *fault.options)
            rest = {"nnodes": fault.nodes, "workers": fault.ranks, "conf": fault.conf}
            node = self.agent(name, *words, env=env, worker=self.words(fault), **rest)
            if name == "a":
                self.wait_for_host(node)

    def start_job(self, fault):
        if fault.nodes == 1:
            return [self.start_one(fault)]
        self.start_nodes(fault)
        return [node.run for node in self.nodes.values()]

    def record(self, name):
        """The events of a node so far."""
        folder = self.run_folder(self.path("logs." + name))
        lines = harness.read(os.path.join(folder, "events.jsonl")).split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    # -- what a program finds ---------------------------------------------------------------------

    def prepare(self, fault, stack):
        if "memory cgroup" in fault.needs:
            folder = os.path.join(MEMORY, "muster-test-" + self.mark)
            try:
                os.mkdir(folder)
            except OSError as error:
                self.skipTest(f"{fault.name}: no cgroup can be made: {error}")
            stack.callback(wait_until, lambda: self.remove_group(folder), "the group is empty")
            with open(os.path.join(folder, "memory.limit_in_bytes"), "w") as file:
                file.write(str(64 << 20))
            self.found["GROUP"] = folder
        if "tmpfs" in fault.needs:
            small = self.path("small")
            os.mkdir(small)
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "small", small])
            if mounted.returncode != 0:
                self.skipTest(f"{fault.name}: no mount")
            stack.callback(subprocess.run, ["umount", "-l", small])
        if "fuse" in fault.needs:
            self.mount_silent(stack)

    def mount_silent(self, stack):
        """A file system whose server has it mounted and never answers."""
        folder = self.path("fuse")
        os.mkdir(folder)
        server = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"silent", folder.encode(), b"fuse", 0, options) != 0:
            os.close(server)
            self.skipTest(f"mount of a FUSE file system: {os.strerror(ctypes.get_errno())}")
        stack.callback(libc.umount2, folder.encode(), 2)  # MNT_DETACH
        stack.callback(os.close, server)  # whoever waits for an answer gets an error

    @staticmethod
    def remove_group(folder):
        for pid in harness.read(os.path.join(folder, "cgroup.procs")).split():
            with contextlib.suppress(ProcessLookupError):  # what a failed job left in it
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return not os.path.isdir(folder)
