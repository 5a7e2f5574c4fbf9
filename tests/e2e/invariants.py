# SPDX-License-Identifier: Apache-2.0
"""What must be true of any job of several nodes, whatever happened to it, as seen from the
events.jsonl of all its nodes. Pure: records in, broken promises out."""

import datetime

# What every node of an attempt is told alike.
SHARED = ("restart_count", "node_count", "world_size", "master_addr", "master_port")
# What makes a failure the same failure on every node.
CULPRIT = ("rank", "host", "pid", "kind", "exit_code")


def check(records, excused=()):
    """records: {name: [events]}. excused: nodes that were killed, frozen or cut off, whose workers
    therefore ended unrecorded or late. Returns a line for each broken promise."""
    broken = []
    for name, events in records.items():
        broken += [f"{name}: {line}" for line in check_numbering(events)]
    attempts = by_attempt(records)
    for attempt, members in sorted(attempts.items()):
        broken += [f"attempt {attempt}: {line}" for line in check_attempt(members)]
        broken += [
            f"attempt {attempt}: {line}" for line in check_culprit(attempt, records, excused)
        ]
    broken += check_budget(attempts, records)
    broken += check_one_world(attempts, records, excused)
    return broken


def time_of(event):
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def by_attempt(records):
    """{attempt: {name: its attempt_started}}"""
    found = {}
    for name, events in records.items():
        for event in events:
            if event["event"] == "attempt_started":
                found.setdefault(event["attempt"], {})[name] = event
    return found


def check_numbering(events):
    for number, event in enumerate(events):
        if event["seq"] != number:
            yield f"event {number} has seq {event['seq']}"
            return
    started = [event["attempt"] for event in events if event["event"] == "attempt_started"]
    if started != sorted(set(started)):
        yield f"attempts in the order {started}"


def own_span(event):
    """The ranks that this node has in it, as a range."""
    [mine] = [span for span in event["nodes"] if span["node"] == event["node"]]
    return range(mine["first_rank"], mine["first_rank"] + mine["workers"])


def check_attempt(members):
    """All nodes were told one story, in which every rank is there once."""
    for key in SHARED:
        values = {name: event[key] for name, event in members.items()}
        if len(set(values.values())) > 1:
            yield f"{key} differs: {values}"
    places = [event["node"] for event in members.values()]
    if len(set(places)) != len(places):
        yield f"two nodes have one place: {places}"
    ranks = sorted(rank for event in members.values() for rank in own_span(event))
    world = max(event["world_size"] for event in members.values())
    if len(set(ranks)) != len(ranks) or (ranks and not 0 <= ranks[0] <= ranks[-1] < world):
        yield f"ranks {ranks} of {world}"
    if len(members) == max(event["node_count"] for event in members.values()):
        if ranks != list(range(world)):
            yield f"all nodes are here, but ranks {ranks} are not those of {world}"
    for event in members.values():  # the coordinator's node tells of all
        if len(event["nodes"]) == event["node_count"]:
            spans = sorted(
                (span["node"], span["first_rank"], span["workers"]) for span in event["nodes"]
            )
            expected = 0
            for place, (node, first, workers) in enumerate(spans):
                if (node, first) != (place, expected):
                    yield f"the coordinator's ranks have gaps: {spans}"
                    break
                expected += workers


def culprits(attempt, events):
    return [
        tuple(event[key] for key in CULPRIT)
        for event in events
        if event["event"] == "failure_found" and event["attempt"] == attempt
    ]


def check_culprit(attempt, records, excused):
    """Every node that tells of a failure names the same first one."""
    told = {name: events for name, events in records.items() if name not in excused}
    named = {name: culprits(attempt, events) for name, events in told.items()}
    first = {name: found[0] for name, found in named.items() if found}
    if len(set(first.values())) > 1:
        yield f"several culprits: {first}"


def check_budget(attempts, records):
    """Restarts are counted once each, for failures only, and never beyond what is allowed."""
    most = max(
        (
            event["max_restarts"]
            for events in records.values()
            for event in events
            if event["event"] == "job_started"
        ),
        default=0,
    )
    numbers = sorted(attempts)
    counts = {
        number: max(e["restart_count"] for e in attempts[number].values()) for number in numbers
    }
    for before, after in zip(numbers, numbers[1:]):
        step = counts[after] - counts[before]
        failures = sum(
            any(culprits(number, events) for events in records.values())
            for number in range(before, after)
        )
        if not 0 <= step <= after - before or step > failures:
            yield f"restart_count {counts[before]} -> {counts[after]} with {failures} failures, " f"attempts {before} -> {after}"
    if any(count > most for count in counts.values()):
        yield f"restart_count {max(counts.values())} of {most}"


def last_end(start, events):
    """When the last of this node's own workers of an attempt ended; None if some end is not
    recorded. (The coordinator's node tells of the others' as well, when it hears of them.)"""
    own = [
        event
        for event in events
        if event.get("attempt") == start["attempt"] and event.get("rank") in own_span(start)
    ]
    pids = {event["pid"] for event in own if event["event"] == "worker_spawned"}
    ends = {event["pid"]: time_of(event) for event in own if event["event"] == "worker_exited"}
    if not pids or pids - set(ends):
        return None
    return max(ends.values())


def check_one_world(attempts, records, excused):
    """An attempt begins on no node before the one before it has ended on all."""
    for attempt, members in sorted(attempts.items()):
        begin = min(time_of(event) for event in members.values())
        for earlier in (number for number in attempts if number < attempt):
            for name, start in attempts[earlier].items():
                end = last_end(start, records[name])
                if name not in excused and end is not None and end > begin:
                    yield f"attempt {attempt} began {end - begin:.3f} s before the end of attempt " f"{earlier} on {name}"
