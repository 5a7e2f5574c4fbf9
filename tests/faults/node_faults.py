# SPDX-License-Identifier: Apache-2.0
"""Faults in jobs of three nodes, a, b and c, some of whose clocks are wrong by minutes."""

import contextlib
import os
import signal

import corpus

nodes = corpus.group("nodes")
SKEW = {"b": 300, "c": -420}


def add(title, program, kind, line="", **rest):
    settings = {"nodes": 3, "ranks": 1, "rank": 1, **rest}
    nodes(title, program, kind, line, **settings)


def python(title, program, *rest, **more):
    add(title, program, *rest, language="py", **more)


SIT = "echo $$ >$T/pid.$RANK.new; mv $T/pid.$RANK.new $T/pid.$RANK; exec sleep 600"


def kill_rank(rank, number):
    def act(scene):
        for one in range(scene.fault.nodes * scene.fault.ranks):
            scene.pid(one)
        os.kill(scene.pid(rank), number)

    return act


def everybody_sits(scene):
    for rank in range(scene.fault.nodes * scene.fault.ranks):
        scene.pid(rank)


def lose(name):
    def act(scene):
        everybody_sits(scene)
        node = scene.nodes[name]
        workers = [scene.pid(rank) for rank in range(3) if "abc"[rank] == name]
        node.kill()
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    return act


add("exit 3 on b", "echo 'no shard for me' >&2; exit 3", "exit_code", "no shard for me")
add("the last rank of c, two on each", "echo 'no shard for me' >&2; exit 3", "exit_code",
    "no shard for me", ranks=2, rank=5)
add("a rank beside the coordinator", "kill -SEGV $$", "segfault", None, rank=0)
python("an exception on c", 'raise ValueError("loss is NaN")', "python_exception",
       "ValueError: loss is NaN", rank=2)
add("killed by a stranger on b", SIT, "killed", None, everyone=True,
    act=kill_rank(1, signal.SIGKILL))
add("a crash on b, whose clock is wrong", SIT, "abort", None, everyone=True, needs="faketime",
    skew=SKEW, act=kill_rank(1, signal.SIGABRT))
add("no program on c", "[ $NODE = c ] && exec /nowhere/train; exec sleep 600", "exec_not_found",
    "/nowhere/train: not found", rank=2, everyone=True)
add("the agent of c is killed", SIT, "node_lost", None, rank=-1, everyone=True,
    env={"CULPRIT": "c"}, act=lose("c"),
    conf={"join_timeout": 3})
add("a rank on b that ignores SIGTERM, the cause is on c", """
    [ $RANK = 2 ] || { trap '' TERM; : >$T/deaf.$RANK; exec sleep 600; }
    while [ ! -e $T/deaf.0 ] || [ ! -e $T/deaf.1 ]; do sleep 0.01; done
    echo 'optimizer: step is not a number' >&2; exit 5
    """, "exit_code", "optimizer: step is not a number", rank=2, everyone=True)
ORDERED = """
import os, socket, sys, time
T, RANK = os.environ["T"], int(os.environ["RANK"])
def wait_for(name):
    while not os.path.exists(T + "/" + name): time.sleep(0.01)
def tell(name):
    open(T + "/" + name, "w").close()
for n in range(3):
    if n == RANK: tell(f"here.{n}")
for n in range(3): wait_for(f"here.{n}")
"""
for title, skew, needs in (
    ("the peers' connections break first", {}, ""),
    ("the peers' connections break first, clocks are wrong", SKEW, "faketime"),
):
    python(
        title,
        ORDERED
        + """
if RANK == 2:
    tell("broken")
    time.sleep(0.3)
    raise ValueError("bad batch on c")
wait_for("broken")
raise ConnectionResetError(104, "Connection reset by peer")
        """,
        "python_exception",
        "ValueError: bad batch on c",
        rank=2,
        victims=(0, 1),
        everyone=True,
        skew=skew,
        needs=needs,
    )
    python(
        title.replace("the peers' connections break first", "the cause is 30 ms before another"),
        ORDERED
        + """
if RANK == 1:
    tell("dead")
    sys.exit("b: no space for activations")
wait_for("dead")
time.sleep(0.03)
if RANK == 2: sys.exit("c: cannot go on")
time.sleep(600)
        """,
        "exit_code",
        "b: no space for activations",
        rank=1,
        maybe=(2,),
        everyone=True,
        skew=skew,
        needs=needs,
    )
add("all nodes but one finish, that one fails", """
    [ $RANK = 2 ] || exit 0
    sleep 0.5; echo 'evaluation failed' >&2; exit 5
    """, "exit_code", "evaluation failed", rank=2, everyone=True)
python("no memory on b, the peers lose it", ORDERED + """
if RANK == 1:
    tell("dying")
    raise MemoryError("cannot allocate 3 GiB for optimizer states")
wait_for("dying")
time.sleep(0.01)
raise BrokenPipeError(32, "Broken pipe")
    """, "memory_error", "MemoryError: cannot allocate 3 GiB", rank=1, victims=(0, 2),
    everyone=True)
