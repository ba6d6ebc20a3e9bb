"""Commands of interpulse that read their own words: each has a `main(words) -> exit code`, imported when it is called."""

import argparse
import importlib
from collections.abc import Sequence
from typing import Any

_COMMANDS = {
    "doctor": ("cli.doctor.__main__", "what is wrong here, how that is seen, and what to do"),
    "completion": ("cli.completion", "a script that completes these commands in bash, zsh or fish"),
    "version": ("cli.version", "version, commit, Python, kernels and protocol"),
}


def add_commands(commands: "argparse._SubParsersAction[Any]") -> None:
    """To the list that --help shows."""
    for name, (_, about) in _COMMANDS.items():
        commands.add_parser(name, help=about, add_help=False)


def is_one(words: Sequence[str]) -> bool:
    return bool(words) and words[0] in _COMMANDS


def run(words: Sequence[str]) -> int:
    """The exit code."""
    module, _ = _COMMANDS[words[0]]
    return int(importlib.import_module(module).main(words[1:]))
