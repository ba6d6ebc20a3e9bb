"""Words that zsh and fish offer for the last word of a line, asked of the shells' own completion. bash: `test_completion`."""

import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS_MAX = 60.0


def program(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell}")
    return found


def fish_offers(source: str, lines: Sequence[str], directory: Path) -> list[set[str]]:
    """Words offered for each line that begin with its last word."""
    file = directory / "completion.fish"
    file.write_text(source)
    asked = "".join(f"\ncomplete -C '{line}'\necho ==" for line in lines)
    command = [program("fish"), "--no-config", "-c", f"source {file}{asked}"]
    environment = {**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS_MAX, env=environment)
    parts = ran.stdout.split("==\n")[: len(lines)]
    return [_beginning(line.split(" ")[-1], part) for line, part in zip(lines, parts, strict=True)]


def _beginning(word: str, offered: str) -> set[str]:
    """fish offers also what has the word within."""
    return {each for line in offered.splitlines() if (each := line.partition("\t")[0]).startswith(word)}


class Zsh:
    """An interactive zsh at a terminal of its own, whose completion system writes down what it offers."""

    def __init__(self, terminal: int, directory: Path) -> None:
        self._terminal, self._directory = terminal, directory

    def offers(self, line: str) -> set[str]:
        """Words offered at the end of the line, when the tabulator is pressed."""
        os.write(self._terminal, line.encode() + b"\t")
        found = self.written("found")
        os.write(self._terminal, b"\x15")  # the line is cleared
        return found

    def written(self, name: str) -> set[str]:
        """The words of a file that appears whole, which is removed."""
        path, until = self._directory / name, time.monotonic() + SECONDS_MAX
        while not path.exists():
            assert time.monotonic() < until, f"zsh has not written {name}"
            if select.select([self._terminal], [], [], 0.02)[0]:
                os.read(self._terminal, 1 << 16)
        words = set(path.read_text().split())
        path.unlink()
        return words


@contextmanager
def zsh_with(source: str, directory: Path) -> Iterator[Zsh]:
    """One that has read the script, as `. <(bin/pulsar completion zsh)` in `.zshrc` would."""
    (directory / "completion.zsh").write_text(source)
    (directory / "setup").write_text(
        f"PS1='' ; autoload -Uz compinit; compinit -u -D; . {directory}/completion.zsh\n"
        'compadd() { local -a found; builtin compadd -O found "$@"\n'
        f"  print -rl -- $found > {directory}/part; mv {directory}/part {directory}/found\n"
        '  builtin compadd "$@" }\n'
        f"print ready > {directory}/part; mv {directory}/part {directory}/ready\n"
    )
    environment = {**os.environ, "HOME": str(directory), "ZDOTDIR": str(directory), "TERM": "vt100", "LC_ALL": "C"}
    terminal, its_end = os.openpty()
    try:
        with subprocess.Popen(
            [program("zsh"), "-f", "-i"],
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                zsh = Zsh(terminal, directory)
                os.write(terminal, f". {directory}/setup\n".encode())
                assert zsh.written("ready") == {"ready"}
                yield zsh
            finally:
                process.kill()
    finally:
        os.close(its_end)
        os.close(terminal)
