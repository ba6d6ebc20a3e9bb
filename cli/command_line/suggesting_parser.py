"""An argparse parser that names the command or option which a wrong word is near to."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from cli.command_line.suggestions import did_you_mean

_INVALID = re.compile(r"invalid choice: '([^']*)'")


class SuggestingParser(argparse.ArgumentParser):
    """Parser whose sub-parsers are of this kind too. Exit code 2 for wrong usage, as argparse has it."""

    def parsed(self, words: Sequence[str]) -> argparse.Namespace:
        """`parse_args`; the parser of the given command reports an unknown option."""
        options, unknown = self.parse_known_args(words)
        if unknown:
            asked = _deepest(self, options)
            word = next((each for each in unknown if each.startswith("-")), unknown[0]).partition("=")[0]
            asked.error(f"unrecognized arguments: {' '.join(unknown)}.{did_you_mean(word, asked._option_string_actions)}")
        return options

    def error(self, message: str) -> NoReturn:
        found = _INVALID.search(message)
        near = did_you_mean(found[1], (name for action in _choosing(self) for name in action.choices)) if found else ""
        super().error(f"{message}.{near}" if near else message)


def _choosing(parser: argparse.ArgumentParser) -> Iterator["argparse._SubParsersAction[Any]"]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield action


def _deepest(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the command that was given, or of its own command."""
    for action in _choosing(parser):
        name = getattr(options, action.dest, None)
        if name in action.choices:
            return _deepest(action.choices[name], options)
    return parser
