# SPDX-License-Identifier: Apache-2.0
"""Jobs that end although no worker failed."""

import os
import shutil
import signal
import subprocess

import corpus
import node_faults

put = corpus.group("ends")


def add(title, kind, act=None, **rest):
    put(title, node_faults.SIT, kind, ends=True, everyone=True, act=act, **rest)


def stop(number):
    def act(scene):
        node_faults.everybody_sits(scene)
        scene.test.running[0].signal(number)

    return act


def stop_as(name):
    """By a process of this name, as a batch system's step does, which lives on after it."""

    def act(scene):
        node_faults.everybody_sits(scene)
        shell = shutil.copy("/bin/sh", scene.test.path(name))
        told = scene.test.running[0]
        words = [shell, "-c", f"kill -TERM {told.pid}; read _"]
        with subprocess.Popen(words, stdin=subprocess.PIPE):
            told.wait_for_message("SIGTERM")

    return act


add("SIGTERM from somebody", "stopped_by_user", stop(signal.SIGTERM))
add("Ctrl-C", "stopped_by_user", stop(signal.SIGINT))
add("SIGTERM from slurmstepd", "stopped_by_scheduler", stop_as("slurmstepd"))
add("SIGTERM from containerd-shim", "stopped_by_scheduler", stop_as("containerd-shim"))
add(
    "SIGTERM from slurmstepd, three nodes",
    "stopped_by_scheduler",
    stop_as("slurmstepd"),
    nodes=3,
    ranks=1,
)
add(
    "a node never comes",
    "rendezvous_timeout",
    nodes=3,
    ranks=1,
    absent=("c",),
    conf={"join_timeout": 2},
)


def lose_coordinator(scene):
    node_faults.lose("a")(scene)


add(
    "the coordinator's node is lost",
    "coordinator_lost",
    lose_coordinator,
    nodes=3,
    ranks=1,
    told_by="b",
    conf={"join_timeout": 2},
)
