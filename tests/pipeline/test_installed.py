"""The package by itself: as `pip install ./pipeline` leaves it, and a source distribution of it, without the checkout.

With compiled kernels where there is a compiler, and without.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.python_client import names, published
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import missing
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.skipif(bool(missing()), reason=missing())]

_READ = """
import sys
sys.path.insert(0, sys.argv[1])
import pyspark_pulsar
assert pyspark_pulsar.__file__.startswith(sys.argv[1])
print(pyspark_pulsar.decoder())
given = dict(zip(("service.url", "admin.url", "topic"), sys.argv[2:]))
import pulsar_frames
assert pulsar_frames.__file__.startswith(sys.argv[1])
table = pulsar_frames.read(given["service.url"], given["topic"], admin_url=given["admin.url"])
assert "pyspark" not in sys.modules
source = pyspark_pulsar.DefaultSource(given)
reader = source.reader(source.schema())
values = [each for part in reader.partitions() for batch in reader.read(part) for each in batch.column("value").to_pylist()]
assert values == table.column("value").to_pylist()
print(*(each.decode() for each in values))
"""
_JOB = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pyspark_pulsar.jobs', run_name='__main__')"


_SOURCE = "from setuptools import build_meta; import sys; print(build_meta.build_sdist(sys.argv[1]))"
_PIP = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation")


def test_the_locks_of_prepare_spark_hold_all_requirements_of_the_package() -> None:
    """Other requirements of the tests once hid that pyarrow was missing."""
    about = tomllib.loads((ROOT / "pipeline" / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", each)[0] for each in (*about["dependencies"], *about["optional-dependencies"]["spark"])}
    locks = [(ROOT / f"{lock}.lock").read_text() for lock in ("requirements", "requirements-spark")]
    assert sorted(needed - set(re.findall(r"^([a-z0-9-]+)==", "".join(locks), re.MULTILINE))) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy: a build writes beside its sources."""
    for name in ("pipeline", "wire"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "build", "*.egg-info")
        )
    return tmp_path


def test_the_package_of_a_source_distribution_reads_a_topic_by_compiled_kernels(
    checkout: Path, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    published(standalone, topic, 20, batching=True)
    run([sys.executable, "-c", _SOURCE, str(tmp_path)], checkout / "pipeline")
    (source,) = tmp_path.glob("*.tar.gz")
    run([*_PIP, "--target", str(tmp_path / "installed"), str(source)], tmp_path)
    has_compiler = shutil.which("cc") is not None
    assert read(tmp_path, options, topic) == ["compiled" if has_compiler else "numpy", *names(0, 20)]


def test_the_package_without_kernels_reads_a_topic_and_has_the_jobs(
    checkout: Path, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    published(standalone, topic, 20, batching=True)
    run([*_PIP, "--target", str(tmp_path / "installed"), str(checkout / "pipeline")], tmp_path, {"CC": "/no/compiler"})
    assert read(tmp_path, options, topic) == ["numpy", *names(0, 20)]
    jobs = run([sys.executable, "-I", "-c", _JOB, str(tmp_path / "installed"), "--help"], tmp_path)
    assert all(job in jobs for job in ("land", "reconcile", "replay", "audit", "dead-letters"))


def test_the_kernels_of_a_wheel_are_those_that_the_pipeline_looks_for() -> None:
    asked = {
        name
        for path in (ROOT / "pipeline" / "pyspark_pulsar").rglob("*.py")
        for name in re.findall(r"compiled\(\"(\w+)\"\)", path.read_text())
    }
    (packed,) = re.findall(r"^KERNELS = \((.*)\)", (ROOT / "pipeline" / "setup.py").read_text(), re.MULTILINE)
    assert asked == set(re.findall(r"\w+", packed))


def read(directory: Path, options: dict[str, str], topic: str) -> list[str]:
    """Decoder in use, and the values that were read."""
    words = [sys.executable, "-I", "-c", _READ, str(directory / "installed")]
    return run([*words, options["service.url"], options["admin.url"], topic], directory).split()


def run(words: list[str], directory: Path, more: Mapping[str, str] | None = None) -> str:
    """Output of a command."""
    environment = {**os.environ, **(more or {})}
    ended = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
