"""Arguments of the jobs' command line: a parser that names the word which a wrong one is near to, and NAME=VALUE options."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from ..errors import WrongOption

FILES = "parquet:"
"""Prefix of the path of a side that is files, not topics."""
_INVALID = re.compile(r"invalid choice: '([^']*)'")
_UNKNOWN = re.compile(r"unrecognized arguments: (-[^\s=]*)")


class SuggestingParser(argparse.ArgumentParser):
    """Parser whose sub-parsers are of this kind too."""

    def error(self, message: str) -> NoReturn:
        jobs = {
            name: job
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name, job in action.choices.items()
        }
        known = [*jobs, *(name for job in jobs.values() for name in job._option_string_actions)]
        found = _INVALID.search(message) or _UNKNOWN.search(message)
        near = difflib.get_close_matches(found[1], known, n=1) if found else []
        super().error(f"{message}. Did you mean '{near[0]}'?" if near else message)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Values by name; the last one counts. WrongOption."""
    found = {}
    for each in texts:
        name, sign, value = each.partition("=")
        if not sign or not name.strip():
            raise WrongOption(f"{option} {each}: expected NAME=VALUE")
        found[name.strip()] = value
    return found
