# SPDX-License-Identifier: Apache-2.0
"""The fault corpus: small real programs that fail in known ways, and what muster must say of each.

A Fault names the rank, the host and the kind of the cause and a part of the line that shows it. The
entries stand in *_faults.py, a group each; faults_test.py runs them, scripts/fault-table makes the
table in docs/failures.md of what came out.
"""

import dataclasses
import functools
import os

# Ranks that are not the culprit wait as ranks do.
SHELL_PEERS = '[ "$RANK" = {rank} ] || exec sleep 600\n'
PYTHON_PEERS = 'import os, time\nif os.environ["RANK"] != "{rank}": time.sleep(600)\n'

faults = []


@dataclasses.dataclass
class Fault:
    name: str  # as in the table: "python: an exception"
    program: str  # of all ranks
    kind: str
    line: str | None = ""  # a part of the line that shows it; None: only the wait status tells
    language: str = "sh"  # or "py", or "command": words as they are
    rank: int = 1  # the culprit, -1 for a whole node
    others: tuple = ()  # independent causes: (rank, kind)
    victims: tuple = ()  # ranks that may stand among the causes, as victims
    maybe: tuple = ()  # ranks that may have failed by themselves before they were stopped
    any_of: tuple = ()  # of several that wait for another, which is first is chance
    waits: bool = False  # the cause waited for a rank that lives: it may be called a victim
    blames: str | None = None  # whom it names then
    everyone: bool = False  # the program itself says what the other ranks do
    ranks: int = 2  # on each node
    nodes: int = 1
    options: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    needs: str = ""  # "root", "memory cgroup", "tmpfs", "torch", "faketime", ...
    skew: dict = dataclasses.field(default_factory=dict)  # {node name: seconds}
    act: object = None  # what the test itself does once the ranks run: act(scene)
    seconds: float = 30.0  # it is over by then
    either: bool = False  # cause and other cause fell so close that either may come first
    small_disk: bool = False  # the run's folder lies on a disk that is full at once
    conf: dict | None = None  # of --rdzv-conf
    absent: tuple = ()  # nodes that never come
    told_by: str = "a"  # the node whose record is looked at
    # No worker is to blame: the kind is that of the job's end.
    ends: bool = False
    group: str = ""

    @property
    def id(self):
        return f"{self.group}: {self.name}"


def group(name):
    """The functions that add programs of a group."""

    def add(title, program, kind, line="", **rest):
        assert all((fault.group, fault.name) != (name, title) for fault in faults), title
        faults.append(Fault(title, program, kind, line, group=name, **rest))

    return add


@functools.cache
def not_right():
    """Ids of the entries that are known not to come out exactly right."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "not_right.txt")) as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def in_group(name):
    return [fault for fault in faults if fault.group == name]


def text_of(fault):
    """The program, with peers that wait unless it takes care of them itself."""
    program = fault.program.strip("\n") + "\n"
    if fault.everyone or fault.ranks * fault.nodes == 1:
        return program
    peers = PYTHON_PEERS if fault.language == "py" else SHELL_PEERS
    return peers.format(rank=fault.rank) + program
