# SPDX-License-Identifier: Apache-2.0
"""--failure-rules: what users call the failures of their programs."""

import json

import harness
from harness import MusterTest

NAN = {
    "kind": "nan_loss",
    "text": "loss is NaN*step",
    "heals": False,
    "reason": "training diverged",
    "hint": "Lower the learning rate.",
}
DIVERGE = 'echo "loss is NaN at step 7" >&2; echo tried >>$T/attempts; exit 3'


class FailureRules(MusterTest):
    def write_rules(self, *rules):
        path = self.path("rules.json")
        with open(path, "w") as file:
            json.dump({"rules": rules}, file)
        return path

    def test_a_rule_names_the_failure_and_whether_a_restart_may_heal_it(self):
        options = ("--summary", self.path("s.json"), "--max-restarts", "2", "--no-python")
        worker = self.script(DIVERGE)
        run = self.muster("--failure-rules", self.write_rules(NAN), *options, worker)
        self.assert_code(run, 3)
        cause = json.loads(self.file("s.json"))["root_cause"]
        self.assertEqual(cause["kind"], "nan_loss")
        self.assertEqual(cause["message"], "loss is NaN at step 7, exited with code 3")
        self.assertIn("training diverged; Lower the learning rate.", run.err)
        self.assertEqual(self.file("attempts"), "tried\n")

    def test_a_kind_of_a_rule_can_have_a_policy(self):
        options = ("--failure-policy", "nan_loss=stop", "--max-restarts", "2", "--no-python")
        rules = self.write_rules({**NAN, "heals": True})
        run = self.muster("--failure-rules", rules, *options, self.script(DIVERGE))
        self.assert_code(run, 3)
        self.assertEqual(self.file("attempts"), "tried\n")
        self.assertNotIn("a kind that no failure has", run.err)

    def test_a_mistake_in_the_file_starts_nothing(self):
        rules = self.write_rules(NAN, {"kind": "x", "txet": "y"})
        run = self.muster("--failure-rules", rules, "--no-python", self.script(DIVERGE))
        self.assert_code(run, 2)
        self.assertEqual(
            run.err,
            f'muster: --failure-rules {rules}: rule 2 (x): "txet": is not a key of a rule\n',
        )
        run = self.muster("--failure-rules", self.path("absent"), "--no-python", "true")
        self.assert_code(run, 2)
        self.assertIn("absent: No such file or directory", run.err)


if __name__ == "__main__":
    harness.main()
