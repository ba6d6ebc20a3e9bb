"""A topic stays small: its objects are counted, so that no change gives each topic a queue, a table or a closure unseen."""

import json
import subprocess
import sys
from pathlib import Path

from tests.leftovers import count_bytes
from tests.started_process import ROOT

SECONDS_MAX = 300
BYTES = 28_500
"""Measured. A tenth more fails."""


def test_a_topic_with_a_producer_a_subscription_and_a_consumer_takes_29_kilobytes_of_objects(tmp_path: Path) -> None:
    command = [sys.executable, "-m", count_bytes.__name__, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    counted = json.loads(done.stdout)
    assert BYTES // 2 < counted["bytes"] < BYTES * 11 // 10, counted
