"""A deleted thing goes by itself: nothing of it waits for the cycle collector, which never looks at what is set aside."""

import json
import subprocess
import sys
from pathlib import Path

from tests.leftovers import count_cycles
from tests.started_process import ROOT

SECONDS_MAX = 300


def test_deleted_objects_need_no_cycle_collector(tmp_path: Path) -> None:
    command = [sys.executable, "-m", count_cycles.__name__, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    left = json.loads(done.stdout)
    assert left == {kind: {} for kind in count_cycles.KINDS}, left
