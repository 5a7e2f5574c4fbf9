# SPDX-License-Identifier: Apache-2.0
"""Several hosts: names, address families, and what networks do to a job. Whatever happens, it ends
in a known state within a bound, and no node trains alone unless the job may be that small."""

import time

import harness
from nodes import SOON, StorePeek
from netns import NetnsTest, run

ELASTIC = "1:2"


class Names(NetnsTest):
    def assert_meet(self, address=None, port=None, **rest):
        """a and b become a job in which the workers are told this address."""
        b = self.agent("b", **rest)
        a = self.agent("a", **rest)
        on_a, on_b = a.wait_for_workers()[0], b.wait_for_workers()[0]
        self.assertEqual((on_a["GROUP_RANK"], on_b["GROUP_RANK"]), ("0", "1"))
        for env in (on_a, on_b):
            self.assertEqual(env["MASTER_PORT"], str(port or self.port))
            if address is not None:
                self.assertEqual(env["MASTER_ADDR"], address)
        self.assertEqual(on_a["MASTER_ADDR"], on_b["MASTER_ADDR"])
        self.assert_reachable(on_b["MASTER_ADDR"])
        self.finish_all(a, b)
        return a, b

    def assert_reachable(self, address):
        """A worker on b reaches the store under the address that it was given."""
        script = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
        self.hosts["b"].run("/usr/bin/python3", "-c", script, address, str(self.port))

    def test_a_name_from_the_hosts_file(self):
        a, b = self.assert_meet("node-a")
        for node in (a, b):
            self.assertNotIn("on other machines", node.run.err)

    def test_the_endpoint_is_an_address(self):
        self.assert_meet("10.77.0.1", endpoint=f"10.77.0.1:{self.port}")

    def test_the_endpoint_is_an_ipv6_address(self):
        self.assert_meet("fd77::1", endpoint=f"[fd77::1]:{self.port}")

    def test_a_host_whose_own_name_is_loopback(self):
        """Debian's /etc/hosts: on node-a the name is 127.0.1.1, elsewhere it is the address."""
        self.hosts["a"].write_hosts({**self.names(), "node-a": "127.0.1.1"})
        self.assert_meet()

    def test_a_name_that_appears_late(self):
        late = {name: where for name, where in self.names().items() if name != "node-a"}
        for host in self.hosts.values():
            host.write_hosts(late)
        a, b = self.agent("a"), self.agent("b")
        b.run.wait_for_message("node-a")
        self.assertEqual((a.seen(), b.seen()), ({}, {}))
        for host in self.hosts.values():
            host.write_hosts(self.names())
        for node in (a, b):
            node.wait_for_workers()
        self.finish_all(a, b)

    def test_no_ipv6_at_all(self):
        for host in self.hosts.values():
            host.only_ipv4()
        a, b = self.assert_meet("node-a")
        for node in (a, b):
            self.assertNotRegex(node.run.err.lower(), "ipv6|family|::")

    def test_ipv6_alone(self):
        for host in self.hosts.values():
            host.only_ipv6()
        for host in self.hosts.values():
            host.write_hosts({"node-a": "fd77::1"})
        self.assert_meet("node-a")

    def test_both_families_of_which_one_does_not_work(self):
        """The name has an IPv6 address at which nobody answers."""
        for host in self.hosts.values():
            with open(host.hosts_file, "a") as file:
                file.write("fd77::99 node-a\n")
        self.assert_meet()

    def test_a_scoped_address(self):
        address = self.hosts["a"].link_local
        self.assert_meet(endpoint=f"[{address}%e0]:{self.port}")

    def test_no_loopback_address_leaves_the_machine(self):
        """The endpoint is a loopback name on every host: each would be alone."""
        a = self.agent("a", endpoint=f"localhost:{self.port}", conf={"join_timeout": 3})
        a.run.wait_for_message("on other machines")
        self.assertEqual(a.run.wait().code, 1)

    def test_the_store_may_be_for_joined_nodes_only(self):
        a, b = self.agent("a", "--store-allow"), self.agent("b", "--store-allow")
        for node in (a, b):
            node.wait_for_workers()
        self.assertTrue(self.answers_store("a", "127.0.0.1"))
        self.assertTrue(self.answers_store("b"))
        self.assertFalse(self.answers_store("c"))
        self.finish_all(a, b)

    def test_without_that_the_store_is_open(self):
        a, b = self.agent("a"), self.agent("b")
        for node in (a, b):
            node.wait_for_workers()
        self.assertTrue(self.answers_store("c"))
        self.finish_all(a, b)

    def answers_store(self, host, address="10.77.0.1"):
        script = f"""
import sys
sys.path.insert(0, {harness.os.path.dirname(harness.__file__)!r})
from nodes import StorePeek
try:
    with StorePeek({self.port}, {address!r}) as store:
        print("yes", store.has("x"))
except (ConnectionError, TimeoutError):
    print("no")
"""
        return "yes" in self.hosts[host].run("/usr/bin/python3", "-B", "-c", script)


class Faults(NetnsTest):
    def job(self, nnodes=ELASTIC, **rest):
        conf = {"last_call_timeout": 3, **rest.pop("conf", {})}
        a = self.agent("a", nnodes=nnodes, conf=conf, **rest)
        self.wait_for_host(a)
        b = self.agent("b", nnodes=nnodes, conf=conf, **rest)
        for node in (a, b):
            node.wait_for_workers()
        return a, b

    def assert_world(self, *members, attempt):
        on = [node.wait_for_workers(attempt=attempt, seconds=30)[0] for node in members]
        self.assertEqual({env["WORLD_SIZE"] for env in on}, {str(len(members))})

    def part(self):
        self.hosts["b"].deaf()
        self.hosts["b"].mute()

    def heal(self):
        self.hosts["b"].heal()

    def link(self, state):
        self.hosts["b"].ip("link", "set", "e0", state)

    def assert_b_comes_back(self, cut, heal):
        """b stops by itself, in time; healed, they are one job again."""
        a, b = self.job()
        cut()
        b.wait_for_no_workers(10)
        heal()
        self.assert_reunited(a, b)
        self.finish_all(a, b)
        self.assertEqual(a.summary["restarts"]["used"], 0)

    def assert_b_is_lost(self, cut):
        """If nothing heals, each side comes to an end: a trains on alone, b gives up."""
        a, b = self.job()
        before = time.monotonic()
        cut()
        self.wait_for_end([b], 1, 25)
        b.wait_for_no_workers(0)
        self.assert_world(a, attempt=1)
        self.assertLess(time.monotonic() - before, 25)
        self.finish_all(a)

    def test_a_short_partition(self):
        self.assert_b_comes_back(self.part, self.heal)

    def test_a_long_partition(self):
        self.assert_b_is_lost(self.part)

    def test_a_node_that_hears_nothing_for_a_while(self):
        self.assert_b_comes_back(self.hosts["b"].deaf, self.heal)

    def test_a_node_that_hears_nothing_any_more(self):
        self.assert_b_is_lost(self.hosts["b"].deaf)

    def test_a_node_that_nobody_hears_for_a_while(self):
        self.assert_b_comes_back(self.hosts["b"].mute, self.heal)

    def test_a_node_that_nobody_hears_any_more(self):
        self.assert_b_is_lost(self.hosts["b"].mute)

    def test_a_link_that_is_down_for_a_while(self):
        self.assert_b_comes_back(lambda: self.link("down"), lambda: self.link("up"))

    def test_a_link_that_stays_down(self):
        self.assert_b_is_lost(lambda: self.link("down"))

    def test_a_partition_of_a_fixed_job_stops_everybody(self):
        """Neither side may train alone; after the join time-out both have ended."""
        a, b = self.job(nnodes="2", conf={"join_timeout": 5})
        self.part()
        for node in (a, b):
            node.wait_for_no_workers(10)
        self.wait_for_end([a, b], 1)
        for node in (a, b):
            self.assertEqual(len(node.seen()), 1, "no worker was started anew")

    def test_a_partition_that_heals_in_time_is_forgiven(self):
        a, b = self.job(nnodes="2")
        self.hosts["b"].deaf()
        time.sleep(1)
        self.hosts["b"].heal()
        time.sleep(4)
        self.finish_all(a, b)
        self.assertEqual(len(a.events("attempt_started")), 1)

    def test_a_fixed_job_goes_on_with_a_replacement_of_a_cut_off_node(self):
        a, b = self.job(nnodes="2")
        self.part()
        a.run.wait_for_message("1 of 2 nodes")
        c = self.agent("c", nnodes="2")
        self.assert_world(a, c, attempt=1)
        b.wait_for_no_workers()
        self.hosts["b"].heal()
        self.finish_all(a, c)
        self.assertIsNotNone(b.run.wait().code)  # a spare that goes home, or one that gave up
        self.assertEqual(len(b.seen()), 1)

    def test_a_node_gets_another_address(self):
        a, b = self.job()
        self.hosts["b"].ip("addr", "del", "10.77.0.2/24", "dev", "e0")
        self.hosts["b"].ip("addr", "add", "10.77.0.22/24", "dev", "e0")
        # It comes back from there, as a node that had been given up.
        self.assert_reunited(a, b)
        self.finish_all(a, b)

    def test_lost_packets(self):
        for host in (self.hosts["a"], self.hosts["b"]):
            host.lossy(10)
        a, b = self.job(conf={"keep_alive_max_attempt": 10})
        time.sleep(5)
        self.tell(b, "exit 5")
        self.wait_for_end([a, b], 5)
        self.assert_same_cause([a, b], host="b", rank=1)

    def test_the_host_vanishes(self):
        """Its machine is switched off: no packet says so."""
        a, b = self.job()
        self.hosts["a"].deaf()
        self.hosts["a"].mute()
        a.kill()
        b.wait_for_no_workers(10)
        self.wait_for_end([b], 1)

    def test_a_node_vanishes(self):
        a, b = self.job()
        self.part()
        b.kill()
        self.assert_world(a, attempt=1)
        self.finish_all(a)

    def test_stopping_a_job_in_two_parts(self):
        """A signal at each side ends each side, although they do not hear of each other."""
        a, b = self.job(nnodes="2")
        self.part()
        before = time.monotonic()
        for node in (a, b):
            node.signal(15)
        self.wait_for_end([a, b], 143)
        self.assertLess(time.monotonic() - before, SOON)


class Cleaning(NetnsTest):
    def test_names_are_this_processs_own(self):
        names = run("ip", "netns", "list")
        for host in self.hosts.values():
            self.assertIn(host.namespace, names)


if __name__ == "__main__":
    harness.main()
