"""Sentences about options: one each for help, and why some have no effect here or are refused. Pure.

Keys are `command.option`, or `option` for all commands of a tool. Every option of a tool is in exactly one of the three.
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from cli.admin.arguments import WrongUsage, label
from cli.admin.table import Command, Option, options, positionals

WIDTH = 118
_INDENT = 8
_EMPTY = ("", "0", "0.0", None)


class OptionTexts(NamedTuple):
    """`about` has the sentences of what is offered; the other two have reasons."""

    about: Mapping[str, str]
    without_effect: Mapping[str, str]
    refused: Mapping[str, str]

    def check(self, command: str, shown: Sequence[Option], values: Mapping[str, Any]) -> Iterator[str]:
        """A line for each option that is given and has no effect. WrongUsage for one that is refused."""
        for option in shown:
            if not _is_given(option, values):
                continue
            name = max(option.names, key=len)
            refused = _text(self.refused, command, option)
            if refused:
                raise WrongUsage(f"{name}: not offered here: {refused}")
            if without := _text(self.without_effect, command, option):
                yield f"{name} has no effect here: {without}"

    def sentence(self, command: str, option: Option) -> str:
        """Sentence for help; "" for an option without one, which a test forbids."""
        if refused := _text(self.refused, command, option):
            return f"Not offered here: {refused}."
        if without := _text(self.without_effect, command, option):
            return f"No effect here: {without}."
        return _text(self.about, command, option)


def _text(texts: Mapping[str, str], command: str, option: Option) -> str:
    return texts.get(f"{command}.{option.key}") or texts.get(option.key, "")


def _is_given(option: Option, values: Mapping[str, Any]) -> bool:
    """Given with its default it is not told."""
    value = values.get(option.key)
    if option.kind == "flag":
        return bool(value)
    return value is not None and value != [] and str(value) not in (str(option.default), *map(str, _EMPTY))


def option_lines(command: str, shown: Sequence[Option], texts: OptionTexts) -> Iterator[str]:
    """Two lines or more for each: its names and its kind; its sentence and its default."""
    for option in shown:
        kind = "" if option.kind == "flag" else f" <{_kind(option)}>"
        yield f"  {', '.join(option.names)}{kind}"
        note = "(required)" if option.required else f"(default: {_default(option)})"
        yield from wrap(
            f"{texts.sentence(command, option)} {note}", WIDTH, initial_indent=" " * _INDENT, subsequent_indent=" " * _INDENT
        )


def _kind(option: Option) -> str:
    name, _, choices = option.kind.partition("(")
    return choices.rstrip(")") if choices else {"texts": "text", "string": "text", "list": "text,text..."}.get(name, name)


def _default(option: Option) -> str:
    if option.kind == "flag":
        return "false"
    return "none" if option.default is None else "''" if option.default == "" else option.default


def command_help(tool: str, command: Command, about: str, more: Sequence[Option], texts: OptionTexts) -> str:
    """The texts of one command. `more`: options that are in no table of Apache's."""
    shown = [*options(command), *more]
    required = [label(option) for option in shown if option.required]
    words = [tool, command.name, *(f"<{name.lower()}>" for name in positionals(command)), *required, "[options]"]
    return "\n".join([f"Usage: {' '.join(words)}", about, "Options:", *option_lines(command.name, shown, texts)])
