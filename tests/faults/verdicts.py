# SPDX-License-Identifier: Apache-2.0
"""Compares what muster said of a fault with what was known of it."""

import dataclasses
import datetime


OF_ITS_OUTPUT = ("stderr", "stdout", "error file")


def unix_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@dataclasses.dataclass
class Verdict:
    """One line of the table."""

    name: str
    expected: str
    found: str
    differences: list  # what is not exactly right
    masked: bool  # neither the cause nor another cause has the culprit
    seconds: float | None  # from the first death to the verdict

    @property
    def right(self):
        return not self.differences

    def as_row(self):
        return {**dataclasses.asdict(self), "right": self.right}


def shown(failure):
    """The line as muster shows it: apart, or quoted by the message."""
    return failure.get("line") or failure["message"]


def describe(rank, host, kind, line):
    where = f"rank {rank}" if rank >= 0 else "node"
    return f"{where}{' on ' + host if host else ''}: {kind}" + (f": {line}" if line else "")


def differences(fault, failures, host):
    """What of these failures, the cause first, is not as it should be."""
    if not failures:
        return ["no cause was named"]
    if fault.either and [(f["rank"], f["kind"]) for f in failures[:1]] == list(fault.others[:1]):
        failures = [failures[1], failures[0], *failures[2:]] if failures[1:] else failures
    root, *rest = failures
    found = []
    rank = root["rank"] if root["rank"] in fault.any_of else fault.rank
    for name, wanted, has in (
        ("rank", rank, root["rank"]),
        ("host", host, root["host"]),
        ("kind", fault.kind, root["kind"]),
    ):
        if wanted != has:
            found.append(f"{name} is {has}, not {wanted}")
    if fault.line and fault.line not in shown(root):
        found.append(f"the line is {shown(root)!r}")
    if fault.line is None and root["line_source"] in OF_ITS_OUTPUT:
        found.append(f"a line of its output is shown: {root['line']!r}")
    if root.get("victim") and not fault.waits:
        found.append("the cause is called a victim")
    if fault.blames is not None and root.get("blames", "") != fault.blames:
        found.append(f"it names {root.get('blames', '')!r}, not {fault.blames!r}")
    independent = [(f["rank"], f["kind"]) for f in rest if not f.get("victim")]
    allowed = list(fault.others) + [pair for pair in independent if pair[0] in fault.maybe]
    if [pair for pair in independent if pair in allowed] != list(fault.others):
        found.append(f"independent causes are {independent}, not {list(fault.others)}")
    elif any(pair not in allowed for pair in independent):
        found.append(f"called independent: {independent}")
    strangers = {f["rank"] for f in rest if f.get("victim")} - {*fault.victims, *fault.any_of}
    if strangers:
        found.append(f"called victims: {sorted(strangers)}")
    return found


def judge_end(fault, failures, kind):
    """Of a job that no worker ended."""
    found = [] if kind == fault.kind else [f"kind is {kind!r}, not {fault.kind}"]
    if failures:
        found.append(f"rank {failures[0]['rank']} is blamed: {failures[0]['kind']}")
    names = [f"the job: {one}" for one in (fault.kind, kind)]
    return Verdict(fault.name, *names, differences=found, masked=bool(failures), seconds=None)


def judge(fault, failures, host, seconds):
    root = failures[0] if failures else None
    names = [(f["rank"], f["host"]) for f in failures]
    return Verdict(
        name=fault.name,
        expected=describe(fault.rank, host if fault.nodes > 1 else "", fault.kind, fault.line),
        found=describe(
            root["rank"], root["host"] if fault.nodes > 1 else "", root["kind"], shown(root)
        )
        if root
        else "nothing",
        differences=differences(fault, failures, host),
        masked=all((rank, host) not in names for rank in (fault.rank, *fault.any_of)),
        seconds=seconds,
    )
