# SPDX-License-Identifier: Apache-2.0
"""Adds up CTest's JUnit files: what failed, what was skipped and why, and one last line."""

import os
import re
import sys
import xml.etree.ElementTree as ElementTree

# What CI may skip, since it has no GPU, or not even the CUDA toolkit. It is still told.
MAY_SKIP = {"gpu: check", "cuda: tests"}
# Cases of these need what a container may withhold, and so their reasons say. They are told too.
MAY_SKIP_IN = ("evidence_tests:", "faults: ", "e2e: evidence")
WITHHELD = re.compile(r"cgroup|kernel|exception-trace|mount|fuse|root", re.I)


def main(paths):
    passed, failed, skipped, may_skip = 0, [], [], []
    for path in paths:
        preset = os.path.splitext(os.path.basename(path))[0]
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{preset}: {case.get('name')}"
            reasons = re.findall(r"^SKIPPED: (.*)$", case.findtext("system-out") or "", re.M)
            withheld = bool(reasons) and all(map(WITHHELD.search, reasons))
            allowed = case.get("name") in MAY_SKIP or (
                case.get("name").startswith(MAY_SKIP_IN) and withheld
            )
            told = may_skip if allowed else skipped
            if case.find("failure") is not None or case.get("status") == "fail":
                failed.append(name)
            elif case.get("status") == "run":
                passed += 1
                told += [f"{name}: {reason}" for reason in reasons]
            elif "SKIP_RETURN_CODE" in case.find("skipped").get("message", ""):
                told.append(f"{name}: {reasons[0] if reasons else 'no reason given'}")
            else:
                failed.append(f"{name}: could not run")
    for line in skipped + may_skip:
        print("skipped", line)
    if os.environ.get("CI") == "true":
        failed += skipped
        skipped = []
    for line in failed:
        print("FAILED ", line)
    skipped += may_skip
    tail = f", {len(skipped)} skipped" if skipped else ""
    print(f"{passed} passed, {len(failed)} failed{tail}")
    return 1 if failed or not passed else 0


sys.exit(main(sys.argv[1:]))
