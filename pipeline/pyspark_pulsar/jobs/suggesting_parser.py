"""Parser that names the job or option that a wrong word is near to."""

import argparse
import difflib
import re
from typing import NoReturn

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
