# SPDX-License-Identifier: Apache-2.0
"""scripts/fault-table finds in a page every entry that it wrote there, and what is not right."""

import os
import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_script():
    loader = SourceFileLoader("fault_table", os.path.join(TOP, "scripts", "fault-table"))
    script = module_from_spec(spec_from_loader("fault_table", loader))
    loader.exec_module(script)
    return script


class Table(unittest.TestCase):
    def setUp(self):
        sys.dont_write_bytecode = True
        self.script = load_script()
        import corpus
        import faults_test  # noqa: F401  has all entries imported
        import hang_faults

        self.faults = corpus.faults
        self.entries = [*corpus.faults, *hang_faults.hangs, *hang_faults.healthy]

    def row(self, entry, wrong):
        group = entry.id.partition(":")[0]
        row = {"group": group, "name": entry.name, "expected": "no alarm", "found": "x | y"}
        row["differences"] = ["kind is exit_code"] if entry.id in wrong else []
        if entry in self.faults:
            row.update(expected=f"rank 1: {entry.kind}: a line", masked=False, seconds=0.024)
        return {"late": 1.0, **row}

    def page(self, wrong):
        rows = [self.row(entry, wrong) for entry in self.entries]
        return f"{self.script.BEGIN}\n\n{self.script.tables(rows)}\n{self.script.END}"

    def complaints(self, page, wrong):
        return list(self.script.complaints(page, self.entries, wrong))

    def test_a_page_that_it_made_is_whole(self):
        for wrong in (set(), {self.entries[0].id, self.entries[-1].id}):
            self.assertEqual(self.complaints(self.page(wrong), wrong), [])

    def test_each_entry_that_lacks_is_named(self):
        page = self.page(set())
        for entry in self.entries:
            name = self.script.quoted(entry.name)
            fewer = page.replace(f" {name}", " another", 1)
            said = self.complaints(fewer, set())
            self.assertTrue(said and all("docs/failures.md" in one for one in said), entry.id)

    def test_what_is_right_on_one_side_alone_is_named(self):
        entry = self.entries[3].id
        said = self.complaints(self.page({entry}), set())
        self.assertEqual(said, [f"docs/failures.md and not_right.txt differ on {entry}"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
