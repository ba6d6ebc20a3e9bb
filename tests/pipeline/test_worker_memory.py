"""Workers of PySpark's daemon, and no other process, set what was imported aside from the cycle collector."""

import subprocess
import sys

import pytest

from tests.started_process import ROOT

PROGRAM = """
import gc, sys, types
sys.path.insert(0, {root!r})
from pipeline.pyspark_pulsar.spark.worker_memory import leave_modules_to_themselves
sys.modules["__main__"].__spec__ = types.SimpleNamespace(name={name!r})
leave_modules_to_themselves()
before = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
leave_modules_to_themselves()
print(before > 1000, gc.get_freeze_count() == before)
"""


@pytest.mark.parametrize(("name", "expected"), [("pyspark.daemon", "True True"), ("somebody.else", "False True")])
def test_it_is_done_once_and_in_workers_alone(name: str, expected: str) -> None:
    program = PROGRAM.format(root=str(ROOT), name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
