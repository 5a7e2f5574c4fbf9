# SPDX-License-Identifier: Apache-2.0
"""Faults in combination, on one node: victims that fall first, several causes, trouble beside."""

import os
import signal

import corpus
from harness import process_state, read_proc, wait_until

add = corpus.group("together")


def python(title, program, *rest, **more):
    add(title, program, *rest, language="py", everyone=True, **more)


# Rank 0 serves, the others are connected to it and wait for its word.
PEERS = """
import os, socket, sys, time
RANK, T = int(os.environ["RANK"]), os.environ["T"]
def meet(n=3):
    if RANK == 0:
        server = socket.create_server(("127.0.0.1", 0))
        with open(T + "/port.new", "w") as f: f.write(str(server.getsockname()[1]))
        os.rename(T + "/port.new", T + "/port")
        return [server.accept()[0] for _ in range(n - 1)]
    while not os.path.exists(T + "/port"): time.sleep(0.01)
    one = socket.create_connection(("127.0.0.1", int(open(T + "/port").read())))
    return [one]
def hear(one):
    if not one.recv(1): raise ConnectionResetError(104, "Connection reset by peer")
def wait_for(name):
    while not os.path.exists(T + "/" + name): time.sleep(0.01)
"""

python(
    "a rank raises, its peers lose their connection",
    PEERS
    + """
peers = meet()
if RANK == 0:
    raise ValueError("bad batch")
hear(peers[0])
    """,
    "python_exception",
    "ValueError: bad batch",
    rank=0,
    ranks=3,
    victims=(1, 2),
)
python(
    "the peers fall first, the culprit 0.3 s later",
    PEERS
    + """
peers = meet()
if RANK == 0:
    for one in peers: one.close()
    time.sleep(0.3)
    raise ValueError("bad batch")
hear(peers[0])
    """,
    "python_exception",
    "ValueError: bad batch",
    rank=0,
    ranks=3,
    victims=(1, 2),
)
python(
    "the peers fall first, the culprit is killed",
    PEERS
    + """
import signal
peers = meet()
if RANK == 0:
    for one in peers: one.close()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
hear(peers[0])
    """,
    "killed",
    None,
    rank=0,
    ranks=3,
    victims=(1, 2),
)
python(
    "a broken pipe is a victim's error",
    PEERS
    + """
peers = meet()
if RANK == 2:
    peers[0].close()
    time.sleep(0.2)
    sys.exit("rank 2: gradient overflow")
if RANK == 0:
    try:
        while True:
            for one in peers: one.sendall(b"x" * 1000)
            time.sleep(0.01)
    finally:
        pass
time.sleep(600)
    """,
    "exit_code",
    "rank 2: gradient overflow",
    rank=2,
    ranks=3,
    victims=(0,),
)
PAUSE = """
echo $$ >$T/pid.$RANK
exec sleep 600
"""


def kill_two(first, second):
    """Both are gone before muster hears of either: its processes are paused meanwhile."""

    def act(scene):
        pids = [scene.pid(rank) for rank in range(scene.fault.ranks)]
        muster = int(read_proc(pids[0], "stat").rpartition(b")")[2].split()[1])
        os.kill(muster, signal.SIGSTOP)
        os.kill(pids[first[0]], first[1])
        os.kill(pids[second[0]], second[1])
        dead = (pids[first[0]], pids[second[0]])
        wait_until(lambda: all(process_state(pid) == "Z" for pid in dead), "both are dead")
        os.kill(muster, signal.SIGCONT)

    return act


add(
    "two ranks are killed at once",
    PAUSE,
    "killed",
    None,
    rank=1,
    ranks=4,
    others=((3, "segfault"),),
    either=True,
    everyone=True,
    act=kill_two((1, signal.SIGKILL), (3, signal.SIGSEGV)),
)
add(
    "two ranks crash at once, the rest waits",
    PAUSE,
    "abort",
    None,
    rank=0,
    ranks=3,
    others=((2, "bus_error"),),
    either=True,
    everyone=True,
    act=kill_two((0, signal.SIGABRT), (2, signal.SIGBUS)),
)
add(
    "all ranks die of the same",
    "echo 'lr must be positive' >&2; exit 2",
    "exit_code",
    "lr must be positive",
    rank=0,
    ranks=1,
)
add(
    "peers that ignore SIGTERM",
    """
    [ $RANK = 2 ] && { sleep 0.2; echo 'no shard left' >&2; exit 6; }
    trap '' TERM; sleep 600 & wait
    """,
    "exit_code",
    "no shard left",
    rank=2,
    ranks=3,
    everyone=True,
)
add(
    "peers that crash while they are stopped",
    """
    [ $RANK = 1 ] || {
      trap 'echo "teardown: null pointer" >&2; kill -SEGV $$' TERM
      : >$T/trapped.$RANK
      sleep 600 & wait
    }
    while [ ! -e $T/trapped.0 ] || [ ! -e $T/trapped.2 ]; do sleep 0.01; done; sleep 0.1
    echo 'no shard left' >&2; exit 6
    """,
    "exit_code",
    "no shard left",
    ranks=3,
    everyone=True,
)
python(
    "peers whose handler of SIGTERM raises",
    """
import os, signal, sys, time
def stop(number, frame): raise RuntimeError("interrupted in the optimizer")
signal.signal(signal.SIGTERM, stop)
if os.environ["RANK"] == "1":
    time.sleep(0.3)
    raise ValueError("negative learning rate")
time.sleep(600)
    """,
    "python_exception",
    "ValueError: negative learning rate",
    ranks=4,
)
add(
    "a peer that exits 0 when it is stopped",
    """
    [ $RANK = 1 ] && { while [ ! -e $T/trapped ]; do sleep 0.01; done; exit 4; }
    trap 'exit 0' TERM; : >$T/trapped; sleep 600 & wait
    """,
    "exit_code",
    None,
    everyone=True,
)
add(
    "a child of the culprit stays",
    "sleep 600 & echo 'out of samples' >&2; exit 8",
    "exit_code",
    "out of samples",
)
add(
    "a child of the culprit holds its stderr",
    "(trap '' TERM; sleep 600) & echo 'out of labels' >&2; exit 8",
    "exit_code",
    "out of labels",
)
add(
    "another fault after a restart",
    """
    [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && { echo 'first try' >&2; exit 3; }
    kill -SEGV $$
    """,
    "segfault",
    None,
    options=("--max-restarts", 1),
)
add(
    "the same fault in every attempt",
    "echo 'driver lost' >&2; exit 3",
    "exit_code",
    "driver lost",
    options=("--max-restarts", 2),
)
add(
    "no place for the logs",
    "echo 'the culprit says this' >&2; exit 3",
    "exit_code",
    "the culprit says this",
    options=("--console", "none"),
    small_disk=True,
    needs="root, tmpfs",
)
add(
    "a peer's log fills the disk",
    """
    [ $RANK = 0 ] && { head -c 4000000 /dev/urandom | base64; exec sleep 600; }
    sleep 1; echo 'the culprit says this' >&2; exit 3
    """,
    "exit_code",
    "the culprit says this",
    options=("--console", "none"),
    small_disk=True,
    needs="root, tmpfs",
    everyone=True,
)
add(
    "a rank that ends early keeps the others waiting",
    """
    [ $RANK = 1 ] && exit 0
    sleep 1
    echo 'RuntimeError: Timed out waiting 1000ms for recv operation to complete' >&2; exit 1
    """,
    "finished_early",
    None,
    ranks=3,
    victims=(0, 2),
    everyone=True,
)
python(
    "a wait for a key that nobody sets",
    """
import os, sys, time
if os.environ["RANK"] == "0":
    time.sleep(0.5)
    raise RuntimeError("no data for rank 0")
class DistStoreError(RuntimeError): pass
DistStoreError.__module__ = "torch.distributed"
time.sleep(0.3)
raise DistStoreError("wait timeout after 300ms, keys: /default_pg/0//ready_of_rank_0")
    """,
    "python_exception",
    "RuntimeError: no data for rank 0",
    rank=0,
    ranks=2,
    victims=(1,),
)
python(
    "an exception in every rank, the cause was first",
    PEERS
    + """
if RANK == 2:
    open(T + "/first", "w").close()
    raise FileNotFoundError("/data/shard_2.tar")
wait_for("first")
time.sleep(0.02)
raise ConnectionResetError(104, "Connection reset by peer")
    """,
    "python_exception",
    "FileNotFoundError: /data/shard_2.tar",
    rank=2,
    ranks=4,
    victims=(0, 1, 3),
)
python(
    "a killed rank, and peers that say what PyTorch says",
    PEERS
    + """
import signal
if RANK == 2:
    open(T + "/first", "w").close()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
wait_for("first")
raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] "
                   "Connection closed by peer [127.0.0.1]:42634")
    """,
    "killed",
    None,
    rank=2,
    ranks=4,
    victims=(0, 1, 3),
)
