"""The package by itself, as `pip install ./pipeline` leaves it: nothing of the checkout beside it, no compiled kernels."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.python_client import published
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import missing
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.skipif(bool(missing()), reason=missing())]

_READ = """
import sys
sys.path.insert(0, sys.argv[1])
import pyspark_pulsar
assert pyspark_pulsar.__file__.startswith(sys.argv[1])
given = dict(zip(("service.url", "admin.url", "topic"), sys.argv[2:]))
source = pyspark_pulsar.DefaultSource(given)
reader = source.reader(source.schema())
for partition in reader.partitions():
    for batch in reader.read(partition):
        print(*(each.decode() for each in batch.column("value").to_pylist()))
"""
_JOB = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pyspark_pulsar.jobs', run_name='__main__')"


def test_the_package_reads_a_topic_and_has_the_jobs_without_the_checkout(
    standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    published(standalone, topic, 20, batching=True)
    installed = tmp_path / "installed"
    for name in ("pipeline", "wire"):  # a build writes beside its sources
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "build", "*.egg-info")
        )
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    run([*pip, "--target", str(installed), str(tmp_path / "pipeline")], tmp_path)
    words = [sys.executable, "-I", "-c", _READ, str(installed), options["service.url"], options["admin.url"], topic]
    assert run(words, tmp_path).split() == [f"m{number}" for number in range(20)]
    jobs = run([sys.executable, "-I", "-c", _JOB, str(installed), "--help"], tmp_path)
    assert all(job in jobs for job in ("land", "reconcile", "replay", "audit", "dead-letters"))


def run(words: list[str], directory: Path) -> str:
    """What it printed."""
    ended = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
