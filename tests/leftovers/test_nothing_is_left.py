"""A deleted topic leaves nothing in memory or in metadata, whatever its kind and its use."""

import json
import subprocess
import sys
from pathlib import Path

from tests.leftovers import count_leftovers
from tests.started_process import ROOT

SECONDS_MAX = 300


def test_nothing_is_left_of_200_topics_of_all_kinds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", count_leftovers.__name__, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout) == {"objects": {}, "topics": [], "paths": []}, done.stderr[-5000:]
