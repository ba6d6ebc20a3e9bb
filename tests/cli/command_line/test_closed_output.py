"""Commands whose output is closed end quietly."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command_line.closed_output import EXIT_CODE, exit_status

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "words",
    [
        ["cli", "version"],
        ["cli", "completion", "bash"],
        ["cli", "--help"],
        ["cli.admin", "--version"],
        ["cli.admin", "topics"],
        ["cli.client", "--help"],
        ["cli.perf", "produce", "--help"],
        ["cli.bookkeeper_shell", "help"],
        ["cli.doctor", "--help"],
        ["simulation", "--help"],
    ],
    ids=" ".join,
)
def test_a_command_whose_output_is_closed_ends_quietly(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    module, *rest = words
    try:
        ended = subprocess.run(
            [sys.executable, "-m", module, *rest], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60
        )
    finally:
        os.close(writing)
    if words == ["cli.admin", "topics"]:
        assert ended.returncode == 1, "the output is empty, and the failure is on stderr"
        assert ended.stderr.startswith("Missing required subcommand")
    else:
        assert (ended.returncode in (0, EXIT_CODE), ended.stderr) == (True, "")


def test_a_command_whose_output_and_errors_are_closed_ends_with_the_status_of_sigpipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "cli.admin", "--version"]
    try:
        ended = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=writing, timeout=60)
    finally:
        os.close(writing)
    assert ended.returncode == EXIT_CODE


def test_the_output_of_a_command_and_its_exit_code_arrive_where_they_are_read() -> None:
    command = [sys.executable, "-m", "cli.admin", "--version"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0
    assert ended.stdout.strip()
    assert ended.stderr == ""


def test_a_broken_pipe_that_is_not_the_outputs_is_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here, there = socket.socketpair()
    there.close()

    def main() -> int:
        return here.send(b"request")

    with (tmp_path / "out").open("w") as out, here:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", out)
        with pytest.raises(BrokenPipeError):
            exit_status(main)
