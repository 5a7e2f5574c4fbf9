# SPDX-License-Identifier: Apache-2.0
"""Prints the conformance table and sees that each of the 70 rows is in it exactly once."""

import unittest

import conformance
import conformance_cli_test
import conformance_control_test
import conformance_environment_test
import conformance_failures_test
import conformance_logs_test
import conformance_nodes_test
import conformance_rendezvous_test
import harness

MODULES = (
    conformance_cli_test,
    conformance_environment_test,
    conformance_logs_test,
    conformance_failures_test,
    conformance_control_test,
    conformance_nodes_test,
    conformance_rendezvous_test,
)


class Table(unittest.TestCase):
    def test_every_row_is_there(self):
        numbers = sorted(conformance.rows)
        self.assertEqual(numbers, list(range(1, 71)))

    def test_every_different_row_has_a_reason(self):
        for number, (_, verdict) in conformance.rows.items():
            self.assertTrue(verdict == "same" or len(verdict) > len("different: "), number)


if __name__ == "__main__":
    for number in range(1, 71):
        behaviour, verdict = conformance.rows[number]
        print(f"{number:2}. {behaviour}\n    {verdict}")
    harness.main()
