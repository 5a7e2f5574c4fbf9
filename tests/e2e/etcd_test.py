# SPDX-License-Identifier: Apache-2.0
"""Jobs whose coordinator is elected through a real etcd, and what becomes of them when the
coordinator or etcd dies."""

import base64
import contextlib
import functools
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import harness
import nodes
from harness import wait_until
from nodes import SOON, NodesTest

ETCD = shutil.which("etcd")
BACKENDS = ("etcd-v2", "etcd-v3")
LEASE = 5.0
# Until a lost coordinator has a successor whose workers run.
TAKE_OVER = LEASE + nodes.SILENCE + SOON


class Etcd:
    """One member on loopback, with its data in the test's folder. Can be killed and come back."""

    def __init__(self, folder):
        self.folder = folder
        self.port = nodes.free_port()
        self.peer_port = nodes.free_port()
        self.process = None
        self.scheme = "http"
        self.tls = None  # of ours, towards it

    def certificate(self):
        """From now on it speaks TLS, with this certificate, and asks for the same of others."""
        files = [os.path.join(self.folder, name) for name in ("cert.pem", "key.pem")]
        words = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *(
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=etcd",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
            ),
            *("-out", files[0], "-keyout", files[1]),
        ]
        subprocess.run(words, check=True, capture_output=True)
        self.scheme = "https"
        self.tls = ssl.create_default_context(cafile=files[0])
        self.tls.load_cert_chain(*files)
        return files

    def start(self, *options):
        client = f"{self.scheme}://127.0.0.1:{self.port}"
        peer = f"http://127.0.0.1:{self.peer_port}"
        words = [
            *(ETCD, "--enable-v2", "--data-dir", os.path.join(self.folder, "etcd")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
            *("--heartbeat-interval", "20", "--election-timeout", "200"),
            *options,
        ]
        with open(os.path.join(self.folder, "etcd.log"), "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        wait_until(self.healthy, "etcd serves", 30)

    def healthy(self):
        with contextlib.suppress(OSError):
            return b"true" in self.ask("/health")
        return False

    def ask(self, path, body=None):
        url = f"{self.scheme}://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(url, body, timeout=5, context=self.tls) as answer:
            return answer.read()

    def office(self, backend, run_id="job"):
        """Who holds the office, None if it is vacant."""
        if backend == "etcd-v3":
            key = f"/torch/elastic/rendezvous/muster/coordinator/{run_id}".encode()
            body = json.dumps({"key": base64.b64encode(key).decode()}).encode()
            found = json.loads(self.ask("/v3/kv/range", body)).get("kvs", [])
            return json.loads(base64.b64decode(found[0]["value"])) if found else None
        try:
            found = self.ask(f"/v2/keys/torchelastic/p2p/muster/coordinator/{run_id}")
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return None
        return json.loads(json.loads(found)["node"]["value"])

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def for_each_backend(test):
    """Runs the test for each of them, in a fresh world."""

    @functools.wraps(test)
    def run(self):
        for backend in BACKENDS:
            with self.subTest(backend):
                self.fresh()
                self.backend = backend
                self.etcd.start()
                test(self)

    return run


@unittest.skipUnless(ETCD, "etcd is not installed")
class EtcdTest(NodesTest):
    def setUp(self):
        super().setUp()
        self.etcd = Etcd(self.path())
        self.addCleanup(self.etcd.kill)

    def member(self, name, *options, **rest):
        endpoint = f"127.0.0.1:{self.etcd.port}"
        return self.agent(name, "--rdzv-backend", self.backend, *options, endpoint=endpoint, **rest)

    def members(self, names, *options, **rest):
        """Starts them, waits until all run, and gives (coordinator's node, others)."""
        started = [self.member(name, *options, **rest) for name in names]
        for one in started:
            one.wait_for_workers()
        return self.who_hosts(started)

    def who_hosts(self, members):
        """(the coordinator's node, the others): only there are joiners recorded."""
        joined = {one.name: one.events("node_joined") for one in members}
        host = max(
            members, key=lambda one: joined[one.name][-1]["time"] if joined[one.name] else ""
        )
        return host, [one for one in members if one is not host]


class Election(EtcdTest):
    @for_each_backend
    def test_a_job_runs_ends_and_leaves_the_office_vacant(self):
        host, others = self.members("ab")
        master = {
            (env["MASTER_ADDR"], env["MASTER_PORT"])
            for one in (host, *others)
            for env in one.living().values()
        }
        self.assertEqual(len(master), 1)
        self.assertEqual(int(master.pop()[1]), self.etcd.office(self.backend)["port"])
        self.finish_all(host, *others)
        self.assertIsNone(self.etcd.office(self.backend))

    def test_nodes_may_be_there_before_etcd(self):
        self.backend = "etcd-v3"
        started = [self.member(name) for name in "ab"]
        refused = f"etcd at 127.0.0.1:{self.etcd.port}: connection refused"
        for one in started:
            wait_until(lambda one=one: refused in one.run.err, f"{one.name} says {refused}", SOON)
        self.etcd.start()
        for one in started:
            one.wait_for_workers()
        self.finish_all(*started)

    def test_an_etcd_that_never_comes_ends_the_job_with_the_reason(self):
        self.backend = "etcd-v3"
        alone = self.member("a", conf={"join_timeout": 3})
        self.wait_for_end([alone], 1)
        self.assertIn(f"etcd at 127.0.0.1:{self.etcd.port}: connection refused", alone.run.err)

    @for_each_backend
    def test_etcd_over_tls_with_certificates_on_both_sides(self):
        self.etcd.kill()
        cert, key = self.etcd.certificate()
        self.etcd.start(
            *("--cert-file", cert, "--key-file", key),
            *("--client-cert-auth", "--trusted-ca-file", cert),
        )
        ours = {
            "etcd-v2": {"ca_cert": cert, "ssl_cert": cert, "ssl_cert_key": key},
            "etcd-v3": {"cacert": cert, "cert": cert, "key": key},
        }
        host, others = self.members("ab", conf={"protocol": "https", **ours[self.backend]})
        self.assertIsNotNone(self.etcd.office(self.backend))
        self.finish_all(host, *others)
        self.assertIsNone(self.etcd.office(self.backend))


class CoordinatorLost(EtcdTest):
    @for_each_backend
    def test_another_node_takes_over_and_the_job_finishes(self):
        host, others = self.members("abc", nnodes="2:3")
        host.kill()
        for one in others:
            one.wait_for_workers(attempt=1, WORLD_SIZE=2, seconds=TAKE_OVER)
        successor, _ = self.who_hosts(others)
        self.assertIn("looking for the next one", successor.run.err)
        self.finish_all(*others)

    @for_each_backend
    def test_a_fixed_number_of_nodes_waits_for_a_replacement(self):
        host, others = self.members("ab")
        host.kill()
        others[0].wait_for_no_workers()
        new = self.member("c")
        for one in (*others, new):
            one.wait_for_workers(attempt=1, WORLD_SIZE=2, seconds=TAKE_OVER)
        self.finish_all(*others, new)

    @for_each_backend
    def test_a_frozen_coordinator_is_replaced_and_stays_deposed(self):
        host, others = self.members("abc", nnodes="2:3")
        host.freeze()
        for one in others:
            one.wait_for_workers(attempt=1, WORLD_SIZE=2, seconds=TAKE_OVER)
        host.thaw()
        # It joins those who went on, as any newcomer.
        for one in (host, *others):
            one.wait_for_workers(WORLD_SIZE=3, seconds=TAKE_OVER)
        self.finish_all(host, *others)

    @for_each_backend
    def test_a_worker_fails_after_the_take_over_and_the_budget_is_the_same(self):
        host, others = self.members("abc", "--max-restarts", "1", nnodes="2:3")
        host.kill()
        for one in others:
            one.wait_for_workers(attempt=1, TORCHELASTIC_RESTART_COUNT=0, seconds=TAKE_OVER)
        self.tell(others[0], "exit 7")
        for one in others:
            one.wait_for_workers(attempt=2, TORCHELASTIC_RESTART_COUNT=1)
        self.tell(others[0], "exit 8")
        self.wait_for_end(others, 8)


class EtcdLost(EtcdTest):
    @for_each_backend
    def test_a_short_absence_costs_nothing(self):
        host, others = self.members("ab")
        self.etcd.kill()
        wait_until(lambda: "connection refused" in host.run.err, "the host says it", SOON)
        self.etcd.start()
        wait_until(lambda: "answers again" in host.run.err, "the host says it", SOON)
        self.finish_all(host, *others)
        for one in (host, *others):
            self.assertEqual(len(one.seen()), 1, one.story())

    @for_each_backend
    def test_a_long_silence_stops_the_job_and_it_forms_again(self):
        host, others = self.members("ab")
        frozen_at = time.monotonic()
        self.etcd.freeze()
        host.wait_for_no_workers()
        self.assertGreater(time.monotonic() - frozen_at, 2.0)
        wait_until(lambda: "could not be renewed" in host.run.err, "the host says why", SOON)
        for one in others:
            one.wait_for_no_workers()
        self.etcd.thaw()
        for one in (host, *others):
            one.wait_for_workers(attempt=1, WORLD_SIZE=2, seconds=TAKE_OVER)
        self.finish_all(host, *others)

    @for_each_backend
    def test_an_etcd_that_stays_away_ends_the_job_at_the_join_time_out(self):
        host, others = self.members("ab", conf={"join_timeout": 4})
        self.etcd.kill()
        self.wait_for_end([host, *others], 1, seconds=40)
        for one in (host, *others):
            self.assertIn("etcd at 127.0.0.1:", one.run.err)


if __name__ == "__main__":
    harness.main()
