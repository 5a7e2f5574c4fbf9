# SPDX-License-Identifier: Apache-2.0
"""Programs that hang in known ways, and healthy ones that only look like it."""

import dataclasses
import os
import signal

hangs = []
healthy = []


@dataclasses.dataclass
class Hang:
    """A job that stops making progress; without kinds a healthy one."""

    name: str
    program: str
    kinds: tuple = ()  # of stall_found: those that tell the truth of it
    suspects: str = "1"
    by_stacks: bool = False  # only they tell the suspects from the others
    language: str = "py"  # or "command"
    ranks: int = 3
    nodes: int = 1
    env: dict = dataclasses.field(default_factory=lambda: {"GLOO_SOCKET_IFNAME": "lo"})
    needs: str = ""
    act: object = None  # what the test does to the ranks: act(scene)
    # What scene.py asks of every entry.
    everyone: bool = True
    options: tuple = ()
    skew: dict = dataclasses.field(default_factory=dict)
    conf: dict | None = None
    small_disk: bool = False
    absent: tuple = ()

    @property
    def id(self):
        return f"{'hangs' if self.kinds else 'soak'}: {self.name}"


# The other ranks are connected to rank 1 and wait for its next word, as in a collective.
MEET = """
import os, socket, sys, threading, time
RANK, T = int(os.environ["RANK"]), os.environ["T"]
def meet():
    if RANK == 1:
        server = socket.create_server(("127.0.0.1", 0))
        with open(T + "/port.new", "w") as f: f.write(str(server.getsockname()[1]))
        os.rename(T + "/port.new", T + "/port")
        return [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
    while not os.path.exists(T + "/port"): time.sleep(0.01)
    return [socket.create_connection(("127.0.0.1", int(open(T + "/port").read())))]
peers = meet()
for one in peers: one.set_inheritable(True)  # another program may take this one's place
def step():
    if RANK == 1:
        for one in peers: one.sendall(b"x")
        for one in peers: one.recv(1)
    else:
        peers[0].recv(1)
        peers[0].sendall(b"y")
for _ in range(100): step()
with open(T + f"/pid.{RANK}.new", "w") as f: f.write(f"{os.getpid()}\\n")
os.rename(T + f"/pid.{RANK}.new", T + f"/pid.{RANK}")
"""


def hang(name, program, kinds, **rest):
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    hangs.append(Hang(name, program, kinds, **rest))


def culprit(name, program, kinds, **rest):
    """Rank 1 hangs, the others wait for it."""
    text = "".join(f"    {line}\n" for line in program.strip("\n").splitlines())
    hang(name, f"{MEET}if RANK == 1:\n{text}while True: step()\n", kinds, **rest)


def stop_rank_1(scene):
    os.kill(scene.pid(1), signal.SIGSTOP)


DIFFERS = "rank_missing"  # by where it waits, or for what
culprit("SIGSTOP", "time.sleep(0)", "stopped", act=stop_rank_1)
culprit("a busy loop", "while True: pass", "spinning")
culprit(
    "a deadlock of two locks",
    """
a, b = threading.Lock(), threading.Lock()
def other():
    with b:
        time.sleep(0.1)
        with a: pass
t = threading.Thread(target=other)
t.start()
with a:
    time.sleep(0.2)
    with b: pass
    """,
    DIFFERS,
)
for how, title, kinds in (
    ("lock", "a lock taken twice, in C++", DIFFERS),
    ("locks", "a deadlock of two locks, in C++", DIFFERS),
    ("spin", "a busy loop in C++", "spinning"),
):
    culprit(title, f'os.execv(os.environ["FAULTS"] + "/hang", ["hang", "{how}"])', kinds)
culprit(
    "a pipe that nobody reads",
    """
r, w = os.pipe()
while True: os.write(w, b"x" * 4096)
    """,
    DIFFERS,
)
culprit(
    "a child that never ends",
    'import subprocess\nsubprocess.run(["sleep", "600"])',
    DIFFERS,
)
culprit("an answer that never comes", 'socket.create_server(("127.0.0.1", 0)).accept()', DIFFERS)
culprit("asleep in the middle", "time.sleep(600)", DIFFERS)
culprit(
    "a file system that never answers",
    "open(T + '/fuse/shard_1.tar').read()",
    "in_kernel",
    needs="root, fuse",
)
culprit(
    "a traceback, and the process lives",
    """
def load(): raise RuntimeError("tokenizer thread died")
t = threading.Thread(target=load)
t.start()
threading.Event().wait()
    """,
    "after_traceback",
)
hang(
    "all wait for each other",
    MEET + "\nwhile True:\n    for one in peers: one.recv(1)\n",
    "all_idle",
    suspects="",
)
hang(
    "asleep in teardown",
    MEET
    + """
for _ in range(10): step()
if RANK == 1:
    threading.Thread(target=time.sleep, args=(600,)).start()
print("done", flush=True)
    """,
    "in_teardown",
)
hang(
    "1.13: a peer is missing in all_reduce",
    "/usr/bin/env TMPDIR={T}/home /usr/bin/python3 {HERE}/torch_worker.py missing_peer",
    DIFFERS,
    language="command",
    suspects="2",
    needs="torch",
)
hang(
    "1.13: collectives in the wrong order",
    "/usr/bin/env TMPDIR={T}/home /usr/bin/python3 {HERE}/torch_worker.py wrong_order",
    DIFFERS,
    language="command",
    suspects="2",
    by_stacks=True,
    needs="torch",
)
hang(
    "1.13: a data loader is stuck",
    "/usr/bin/env TMPDIR={T}/home /usr/bin/python3 {HERE}/torch_worker.py data_stuck",
    DIFFERS,
    language="command",
    suspects="2",
    needs="torch",
)
culprit("a rank of another node sleeps", "time.sleep(600)", DIFFERS, nodes=3, ranks=1)
culprit("SIGSTOP on another node", "time.sleep(0)", "stopped", nodes=3, ranks=1, act=stop_rank_1)


def soak(name, program, **rest):
    healthy.append(Hang(name, program, **rest))


# Each runs for a dozen thresholds.
LONG = "END = time.monotonic() + float(os.environ['LONG'])\nwhile time.monotonic() < END:\n"
soak(
    "bursts of sleep and output",
    f"{MEET}{LONG}    time.sleep(float(os.environ['T0']) * 0.6); print('step', flush=True)\n",
)
soak(
    "one evaluates with the CPU, the others wait",
    f"{MEET}{LONG}"
    """
    if RANK == 1:
        until = time.monotonic() + float(os.environ["T0"]) * 2.5
        while time.monotonic() < until:
            sorted(str(n) for n in range(20000))
    step()
""",
)
soak(
    "one writes a checkpoint, the others wait",
    f"{MEET}{LONG}"
    """
    if RANK == 1:
        until = time.monotonic() + float(os.environ["T0"]) * 2.5
        while time.monotonic() < until:
            with open(T + "/checkpoint", "wb") as f: f.write(bytes(1 << 20))
            time.sleep(0.05)
    step()
""",
)
soak(
    "all compute without a word",
    f"{MEET}{LONG}"
    """
    until = time.monotonic() + float(os.environ["T0"]) * 2.5
    n = 0
    while time.monotonic() < until: n += 1
    step()
""",
)
soak(
    "one compiles in a child, the others wait",
    f"{MEET}{LONG}"
    """
    if RANK == 1:
        import subprocess
        until = time.monotonic() + float(os.environ["T0"]) * 2
        while time.monotonic() < until:
            subprocess.run(["c++", "-x", "c++", "-O2", "-fsyntax-only", "-"], check=True,
                           input=b"#include <map>\\nstd::map<int, long> m;")
    step()
""",
)
