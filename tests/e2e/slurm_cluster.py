# SPDX-License-Identifier: Apache-2.0
"""A Slurm of four nodes on this machine, for as long as stdin is open.

    slurm_cluster.py FOLDER

Starts munged, slurmctld and four slurmd with their files in FOLDER, says "ready" when the nodes are
idle, and ends them all when stdin ends. They are its children, and so is what they leave behind:
whoever started this sees nothing of it.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 60.0
PR_SET_CHILD_SUBREAPER = 36
NODES = ("n1", "n2", "n3", "n4")
CONF = """\
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket,cred_expire=5
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ctld}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/ctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
MpiDefault=none
SlurmctldLogFile={dir}/ctld.log
SlurmdLogFile={dir}/slurmd-%n.log
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=100"


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def write_conf(folder):
    host = socket.gethostname().split(".")[0]
    ctld, *ports = free_ports(1 + len(NODES))
    nodes = [NODE.format(name=n, host=host, port=p) for n, p in zip(NODES, ports)]
    values = {"host": host, "dir": folder, "user": "root", "ctld": ctld, "nodes": "\n".join(nodes)}
    path = os.path.join(folder, "slurm.conf")
    with open(path, "w") as file:
        file.write(CONF.format(**values))
    return path


def make_key(folder):
    path = os.path.join(folder, "munge.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(128))
    return path


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.daemons = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def daemon(self, *command):
        with open(self.path(os.path.basename(command[0]) + ".out"), "ab") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        self.daemons.append(process)

    def wait(self, what, predicate):
        deadline = time.monotonic() + PATIENCE
        while not predicate():
            for process in self.daemons:
                if process.poll() is not None:
                    sys.exit(f"{process.args[0]} ended with {process.returncode}")
            if time.monotonic() > deadline:
                sys.exit(f"gave up waiting until {what}")
            time.sleep(0.05)

    def start(self):
        os.mkdir(self.path("state"))
        self.daemon(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={make_key(self.folder)}",
            f"--socket={self.path('munge.socket')}",
            f"--pid-file={self.path('munge.pid')}",
            f"--log-file={self.path('munge.log')}",
            f"--seed-file={self.path('munge.seed')}",
        )
        self.wait("munged listens", lambda: os.path.exists(self.path("munge.socket")))
        conf = write_conf(self.folder)
        os.environ["SLURM_CONF"] = conf
        self.daemon("slurmctld", "-D", "-f", conf)
        for name in NODES:
            self.daemon("slurmd", "-D", "-f", conf, "-N", name)
        self.wait("four nodes are idle", self.all_idle)

    def all_idle(self):
        command = ("sinfo", "--noheader", "--format=%D %t")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.decode().split() == [str(len(NODES)), "idle"]

    def stop(self):
        for process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        reap_the_rest()


def reap_the_rest():
    """Ends what the daemons left to us, the keepers of steps."""
    deadline = time.monotonic() + 10
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            continue
        if time.monotonic() > deadline:
            with open("/proc/self/task/{0}/children".format(os.getpid())) as file:
                for word in file.read().split():
                    os.kill(int(word), signal.SIGKILL)
        time.sleep(0.05)


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    cluster = Cluster(sys.argv[1])
    try:
        cluster.start()
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
