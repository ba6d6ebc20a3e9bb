"""Workers of PySpark's daemon, and no other process, set what was imported aside from the cycle collector."""

import subprocess
import sys

import pytest

from tests.started_process import ROOT

PROGRAM = """
import gc, itertools, sys, types
sys.path.insert(0, {root!r})
from pipeline.pyspark_pulsar.spark.worker_memory import leave_modules_to_themselves
sys.modules["__main__"].__spec__ = types.SimpleNamespace(name={name!r})
counts = [gc.get_freeze_count()]
for task in range(4):
    leave_modules_to_themselves()
    counts.append(gc.get_freeze_count())
    kept = [kept, [[] for _ in range(1000)]] if task else [[] for _ in range(1000)]
print(*(after - before > 999 for before, after in itertools.pairwise(counts)))
"""


@pytest.mark.parametrize(
    ("name", "expected"), [("pyspark.daemon", "True True False False"), ("somebody.else", "False False False False")]
)
def test_objects_are_frozen_as_the_first_two_tasks_begin_and_in_pyspark_workers_alone(name: str, expected: str) -> None:
    program = PROGRAM.format(root=str(ROOT), name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
