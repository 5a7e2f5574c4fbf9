# SPDX-License-Identifier: Apache-2.0
"""Processes that a batch system's tools leave to whoever takes orphans: the test."""

import os

from harness import children, process_state, read_proc, wait_until


def name_of(pid):
    return read_proc(pid, "stat").partition(b"(")[2].rpartition(b")")[0].decode()


def wait_for_strays(runs, names=None):
    """Waits until our children of these names, or of any, have ended, and takes them."""
    ours = {run.pid for run in runs}

    def strays():
        found = [pid for pid in children(os.getpid()) if pid not in ours]
        return [pid for pid in found if names is None or name_of(pid) in names]

    def none_left():
        for pid in strays():
            if process_state(pid) == "Z":
                os.waitpid(pid, 0)
        return not strays()

    wait_until(none_left, "what a batch system left has ended")
