"""The scheduling policy of XLA's worker threads."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another system's scheduler")

PROGRAM = """
import os
from pathlib import Path

import funcgrad as fg
import funcgrad.numpy as fnp

if POLICY is not None:
    os.sched_setscheduler(0, POLICY, os.sched_param(0))
fg.jit(fnp.sin)(fnp.ones(3))
threads = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "tf_XLAEigen\\n"]
assert threads
print({os.sched_getscheduler(int(task.name)) for task in threads} == {EXPECTED}, os.sched_getscheduler(0) == MAIN)
"""


def policies(policy: str, expected: str, main: str) -> list[str]:
    program = f"import os\nPOLICY, EXPECTED, MAIN = {policy}, {expected}, {main}\n{PROGRAM}"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()


def test_workers_do_not_take_the_core_of_a_running_thread():
    assert policies("None", "os.SCHED_BATCH", "os.SCHED_OTHER") == ["True", "True"]


def test_a_policy_of_the_process_is_kept():
    assert policies("os.SCHED_IDLE", "os.SCHED_IDLE", "os.SCHED_IDLE") == ["True", "True"]


def test_threads_whose_policy_cannot_be_set_keep_it(monkeypatch):
    from funcgrad.native.scheduling import batch_scheduling

    asked = []

    def refuse(thread, policy, parameter):
        asked.append(thread)
        raise PermissionError(1, "Operation not permitted")

    batch_scheduling()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm") as name:
            if name.read() == "tf_XLAEigen\n":
                os.sched_setscheduler(int(task), os.SCHED_OTHER, os.sched_param(0))
    with monkeypatch.context() as patched:
        patched.setattr(os, "sched_setscheduler", refuse)
        batch_scheduling.__wrapped__()
    assert len(asked) >= 1
    batch_scheduling.__wrapped__()
