# SPDX-License-Identifier: Apache-2.0
"""The port at which nodes meet when the workers' store is not there."""

import socket
import struct

import harness
from nodes import NodesTest, StorePeek

OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


class Door(NodesTest):
    def test_workers_that_host_their_own_store_get_a_port_that_is_free(self):
        a, b = self.running_pair(env=OWN_STORE)
        on_a, on_b = a.living()[0], b.living()[0]
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            self.assertEqual(on_a[name], on_b[name])
        self.assertEqual(on_a["TORCHELASTIC_USE_AGENT_STORE"], "False")
        # What rank 0 does; the nodes' own port would refuse it.
        with socket.create_server((on_a["MASTER_ADDR"], int(on_a["MASTER_PORT"]))):
            pass
        self.finish_all(a, b)

    def test_the_port_then_serves_no_store(self):
        a, b = self.running_pair(env=OWN_STORE)
        greeting = struct.pack("<BIBI", StorePeek.VALIDATE, StorePeek.MAGIC, StorePeek.PING, 7)
        with socket.create_connection(("127.0.0.1", self.port), 10) as client:
            client.sendall(greeting)
            try:
                self.assertEqual(client.recv(4), b"")
            except ConnectionResetError:
                pass
        self.finish_all(a, b)

    def test_nodes_that_disagree_about_it_are_told(self):
        a = self.agent("a", env=OWN_STORE)
        self.wait_for_host(a)
        b = self.agent("b")
        self.wait_for_end([b], 1)
        self.assertIn("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", b.run.err)
        a.signal(15)
        self.wait_for_end([a], 143)


if __name__ == "__main__":
    harness.main()
