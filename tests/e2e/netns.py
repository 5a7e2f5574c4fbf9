# SPDX-License-Identifier: Apache-2.0
"""Hosts in network namespaces, joined by a bridge in one more. Each has its own addresses, its own
/etc/hosts, its own host name, and a packet filter in which links can be cut in one direction.

The names of the namespaces carry this process's id. Those of a test that was killed are removed by
the next one.
"""

import os
import re
import shutil
import subprocess
import unittest

from harness import alive
from nodes import NodesTest

PREFIX = "mustertest"
SWITCH = "switch"


def run(*words, check=True):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}")
    return done.stdout


def why_not():
    """Why there can be no hosts of this kind here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program, package in (("ip", "iproute2"), ("nft", "nftables"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            return f"no {program} here; package {package} has it"
    name = f"{PREFIX}{os.getpid()}probe"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "exec", name, "nft", "list", "ruleset")
    except RuntimeError as error:
        return f"network namespaces are not possible here: {error}"
    finally:
        run("ip", "netns", "del", name, check=False)
    return None


class Host:
    """One host: a namespace with the interface e0."""

    def __init__(self, name, number):
        self.name = name
        self.namespace = f"{PREFIX}{os.getpid()}{name}"
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number}"
        self.hosts_file = f"/etc/netns/{self.namespace}/hosts"

    def create(self, switch):
        run("ip", "netns", "add", self.namespace)
        os.makedirs(os.path.dirname(self.hosts_file))
        self.write_hosts({})
        with open(os.path.join(os.path.dirname(self.hosts_file), "resolv.conf"), "w") as file:
            file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        self.ip("link", "set", "lo", "up")
        # No waiting for an answer that somebody else has our address.
        self.sysctl("net.ipv6.conf.all.accept_dad", 0)
        self.sysctl("net.ipv6.conf.default.accept_dad", 0)
        run(
            *("ip", "-n", switch, "link", "add", "v" + self.name, "type", "veth"),
            *("peer", "name", "e0", "netns", self.namespace),
        )
        run("ip", "-n", switch, "link", "set", "v" + self.name, "master", "sw0", "up")
        self.sysctl("net.ipv6.conf.e0.accept_dad", 0)
        self.ip("link", "set", "e0", "up")
        self.ip("addr", "add", self.address + "/24", "dev", "e0")
        self.ip("addr", "add", self.address6 + "/64", "dev", "e0", "nodad")
        self.nft("add table inet test")
        for hook in ("input", "output"):
            chain = f"add chain inet test {hook} {{ type filter hook {hook} priority 0; }}"
            self.nft(chain)

    def ip(self, *words):
        return run("ip", "-n", self.namespace, *words)

    def nft(self, rule):
        return self.run("nft", rule)

    def run(self, *words):
        return run("ip", "netns", "exec", self.namespace, *words)

    def sysctl(self, key, value):
        path = "/proc/sys/" + key.replace(".", "/")
        self.run("sh", "-c", f"echo {value} >{path}")

    def write_hosts(self, names):
        """Its /etc/hosts: {name: address}. Written in place, because it is mounted."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{address} {name}" for name, address in names.items()]
        with open(self.hosts_file, "w") as file:
            file.write("\n".join(lines) + "\n")

    @property
    def link_local(self):
        found = re.search(r"inet6 (fe80:\S+)/", self.ip("-6", "addr", "show", "dev", "e0"))
        return found.group(1)

    def only_ipv4(self):
        self.sysctl("net.ipv6.conf.all.disable_ipv6", 1)

    def only_ipv6(self):
        self.ip("addr", "del", self.address + "/24", "dev", "e0")

    # -- faults -----------------------------------------------------------------------------------

    def deaf(self):
        """Nothing arrives here any more; what is sent from here still does."""
        self.nft('add rule inet test input iifname "e0" drop')

    def mute(self):
        """Nothing that is sent here leaves."""
        self.nft('add rule inet test output oifname "e0" drop')

    def lossy(self, percent):
        for hook, name in (("input", "iifname"), ("output", "oifname")):
            chance = f"numgen random mod 100 < {percent}"
            self.nft(f'add rule inet test {hook} {name} "e0" meta l4proto tcp {chance} drop')

    def heal(self):
        self.nft("flush chain inet test input")
        self.nft("flush chain inet test output")

    def command(self):
        """What goes before a command to run it on this host."""
        script = 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"'
        return [
            *("ip", "netns", "exec", self.namespace, "unshare", "--uts"),
            *("sh", "-c", script, self.name),
        ]


def remove_all(of_pid):
    """Deletes the namespaces that the process with this id made."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        if re.fullmatch(rf"{PREFIX}{of_pid}[a-z]+", name):
            run("ip", "netns", "del", name, check=False)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)


class NetnsTest(NodesTest):
    """A test on hosts a, b and c."""

    NAMES = "abc"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if (reason := why_not()) is not None:
            raise unittest.SkipTest(reason)
        for line in run("ip", "netns", "list").splitlines():
            made = re.match(rf"{PREFIX}(\d+)[a-z]", line)
            if made and not alive(int(made.group(1))):
                remove_all(made.group(1))

    def setUp(self):
        self.addCleanup(remove_all, os.getpid())  # comes last: after what runs there was stopped
        super().setUp()
        switch = f"{PREFIX}{os.getpid()}{SWITCH}"
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "sw0", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "sw0", "up")
        self.hosts = {}
        for number, name in enumerate(self.NAMES, 1):
            self.hosts[name] = Host(name, number)
            self.hosts[name].create(switch)
        for host in self.hosts.values():
            host.write_hosts(self.names())
        self.port = 29400

    def names(self):
        """Every host by its IPv4 address."""
        return {"node-" + host.name: host.address for host in self.hosts.values()}

    def agent(self, name, *options, host=None, endpoint=None, **rest):
        """Starts the agent of node `name` on the host of that name, or on another."""
        if endpoint is None:
            endpoint = f"node-a:{self.port}"
        prefix = self.hosts[host or name[0]].command()
        return super().agent(name, *options, endpoint=endpoint, prefix=prefix, **rest)

    def host_name(self, name):
        return name[0]
