# SPDX-License-Identifier: Apache-2.0
"""A worker that puts PyTorch's own TCPStore client against the store that its launcher hosts."""

import os
import threading
import time
import unittest
from datetime import timedelta

import torch.distributed as dist


def connect(seconds=30, **options):
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(*address, timeout=timedelta(seconds=seconds), **options)


def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


class Store(unittest.TestCase):
    def setUp(self):
        self.store = connect()
        self.name = f"{os.getpid()}/{self.id()}/"  # each test has keys of its own

    def key(self, name):
        return self.name + name

    def test_what_is_set_is_got(self):
        for value in (b"", b"plain", bytes(range(256)), b"x" * (1 << 20)):
            self.store.set(self.key("a"), value.decode("latin-1") if value == b"plain" else value)
            self.assertEqual(self.store.get(self.key("a")), value)

    def test_another_client_sees_it(self):
        self.store.set(self.key("a"), "1")
        self.assertEqual(connect().get(self.key("a")), b"1")

    def test_add_counts_and_its_value_is_text(self):
        self.assertEqual(self.store.add(self.key("n"), 5), 5)
        self.assertEqual(self.store.add(self.key("n"), -7), -2)
        self.assertEqual(self.store.get(self.key("n")), b"-2")
        self.store.set(self.key("n"), "40")
        self.assertEqual(self.store.add(self.key("n"), 2), 42)
        self.assertEqual(self.store.add(self.key("zero"), 0), 0)
        self.assertEqual(self.store.get(self.key("zero")), b"0")

    def test_adds_from_many_clients_are_all_counted(self):
        def adds():
            store = connect()
            for _ in range(100):
                store.add(self.key("n"), 1)

        for thread in [in_thread(adds) for _ in range(8)]:
            thread.join()
        self.assertEqual(self.store.add(self.key("n"), 0), 800)

    def test_compare_set_in_its_four_cases(self):
        key = self.key("c")
        self.assertEqual(self.store.compare_set(key, "other", "new"), b"other")
        self.assertEqual(self.store.compare_set(key, "", "first"), b"first")
        self.assertEqual(self.store.compare_set(key, "wrong", "new"), b"first")
        self.assertEqual(self.store.compare_set(key, "first", "second"), b"second")
        self.assertEqual(self.store.get(key), b"second")

    def test_wait_ends_when_the_last_key_is_there(self):
        keys = [self.key(name) for name in "abc"]
        done = threading.Event()

        def waits():
            connect().wait(keys)
            done.set()

        waiter = in_thread(waits)
        for key in keys:
            self.assertFalse(done.is_set())
            self.store.set(key, "")
        waiter.join(30)
        self.assertTrue(done.is_set())

    def test_get_waits_for_the_key(self):
        got = []
        reader = in_thread(lambda: got.append(connect().get(self.key("late"))))
        self.store.set(self.key("late"), "here")
        reader.join(30)
        self.assertEqual(got, [b"here"])

    def test_compare_set_and_add_wake_those_who_wait(self):
        for key, wake in (
            (self.key("c"), lambda: self.store.compare_set(self.key("c"), "", "x")),
            (self.key("n"), lambda: self.store.add(self.key("n"), 1)),
        ):
            waiter = in_thread(lambda key=key: connect().wait([key]))
            wake()
            waiter.join(30)
            self.assertFalse(waiter.is_alive())

    def test_a_wait_times_out(self):
        began = time.monotonic()
        with self.assertRaises(RuntimeError):
            self.store.wait([self.key("never")], timedelta(milliseconds=300))
        self.assertGreaterEqual(time.monotonic() - began, 0.25)

    def test_delete_and_number_of_keys(self):
        before = self.store.num_keys()
        for name in "abc":
            self.store.set(self.key(name), "1")
        self.assertEqual(self.store.num_keys(), before + 3)
        self.assertTrue(self.store.delete_key(self.key("a")))
        self.assertFalse(self.store.delete_key(self.key("a")))
        self.assertEqual(self.store.num_keys(), before + 2)

    def test_prefixes_keep_keys_apart(self):
        one = dist.PrefixStore(self.key("one"), self.store)
        two = dist.PrefixStore(self.key("two"), one)
        one.set("k", "1")
        two.set("k", "2")
        self.assertEqual((one.get("k"), two.get("k")), (b"1", b"2"))
        self.assertEqual(self.store.get(self.key("one") + "/k"), b"1")
        self.assertEqual(self.store.get(self.key("one") + "/" + self.key("two") + "/k"), b"2")

    def test_many_clients_at_once(self):
        clients = [connect() for _ in range(100)]
        for number, client in enumerate(clients):
            client.set(self.key(str(number)), str(number))
        for number, client in enumerate(reversed(clients)):
            self.assertEqual(client.get(self.key(str(number))), str(number).encode())

    def test_a_world_size_joins_the_count_of_members(self):
        connect(world_size=2, is_master=False)
        self.assertGreaterEqual(self.store.num_keys(), 1)


@unittest.skipUnless(hasattr(dist.TCPStore, "multi_get"), "not in this PyTorch")
class NewerStore(unittest.TestCase):
    """What came after 1.13. Queues are not here: a client without libuv refuses them by itself."""

    setUp = Store.setUp
    key = Store.key

    def test_many_values_at_once(self):
        keys = [self.key(str(number)) for number in range(1000)]
        self.store.multi_set(keys, [key.upper() for key in keys])
        self.assertEqual(self.store.multi_get(keys), [key.upper().encode() for key in keys])

    def test_append(self):
        for part in ("ab", "", "c"):
            self.store.append(self.key("a"), part)
        self.assertEqual(self.store.get(self.key("a")), b"abc")

    def test_check(self):
        self.store.set(self.key("a"), "")
        self.assertTrue(self.store.check([self.key("a")]))
        self.assertFalse(self.store.check([self.key("a"), self.key("b")]))

    def test_a_client_goes_on_after_a_wait_that_timed_out(self):
        for _ in range(5):
            with self.assertRaises(dist.DistStoreError):
                self.store.wait([self.key("never")], timedelta(milliseconds=20))
            self.store.set(self.key("a"), "1")
            self.assertEqual(self.store.get(self.key("a")), b"1")

    def test_list_of_keys(self):
        self.store.set(self.key("a"), "1")
        self.store.set(self.key("b"), "2")
        mine = [key for key in self.store.list_keys() if key.startswith(self.name)]
        self.assertEqual(sorted(mine), [self.key("a"), self.key("b")])

    def test_barrier(self):
        passed = []

        def member():
            connect().barrier(self.key("b"), 4)
            passed.append(1)

        members = [in_thread(member) for _ in range(3)]
        with self.assertRaises(dist.DistStoreError):
            self.store.wait([self.key("never")], timedelta(milliseconds=100))
        self.assertEqual(passed, [])
        self.store.barrier(self.key("b"), 4)
        for thread in members:
            thread.join(30)
        self.assertEqual(len(passed), 3)

    def test_clone_is_a_connection_of_its_own(self):
        clone = self.store.clone()
        clone.set(self.key("a"), "1")
        self.assertEqual(self.store.get(self.key("a")), b"1")


if __name__ == "__main__":
    unittest.main(argv=["store_worker"], verbosity=0)
