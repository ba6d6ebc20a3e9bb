"""`bin/release --dry-run`: what a release checks and builds, without a tag."""

import hashlib
import subprocess
from pathlib import Path

from cli.version import VERSION
from tests.licences import ROOT
from tests.toolchain import run_tool


def test_a_dry_run_checks_builds_and_sums_up_without_a_tag(tmp_path: Path) -> None:
    before = run_tool(["git", "tag", "--list"], ROOT, 60)
    output = run_tool([str(ROOT / "bin" / "release"), VERSION, "--dry-run", "--dist", str(tmp_path)], ROOT, 600)
    assert f"dry run: v{VERSION} is not made" in output
    assert run_tool(["git", "tag", "--list"], ROOT, 60) == before
    lines = [line.split("  ") for line in (tmp_path / "SHA256SUMS").read_text().splitlines()]
    sums = {name: told for told, name in lines}
    assert len(sums) == 2
    assert sums == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in sums}


def test_a_version_that_the_places_do_not_name_is_refused_with_the_place(tmp_path: Path) -> None:
    for version, reason in (("9.9.9", f"cli/version.py names {VERSION}, not 9.9.9"), ("next", "next: expected a version")):
        command = [str(ROOT / "bin" / "release"), version, "--dry-run", "--dist", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []
