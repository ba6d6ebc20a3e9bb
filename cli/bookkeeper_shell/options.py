"""Options as BookieShell reads them (commons-cli's BasicParser): `-l 5`, `-ledgerid 5`, `--ledgerid 5`, anywhere. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cli.command_line.suggestions import did_you_mean

LONG_MAX = (1 << 63) - 1


class WrongUsage(Exception):
    """Words that the command does not take; its usage is shown. `code` is the exit code."""

    def __init__(self, message: str, code: int = 255) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Option:
    """`takes` names its value; empty: it is there or not."""

    short: str
    long: str = ""
    takes: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        names = f"-{self.short}" + (f", --{self.long}" if self.long else "")
        return f"{names} <{self.takes}>" if self.takes else names


HELP = Option("h", "help", note="Show the help")


@dataclass(frozen=True, slots=True)
class Given:
    """Options and arguments of the command line. Options are found by their short names; `arguments` are all other words."""

    options: Mapping[str, str]
    arguments: tuple[str, ...] = ()

    def has(self, short: str) -> bool:
        return short in self.options

    def text(self, short: str, default: str = "") -> str:
        return self.options.get(short, default)

    def number(self, short: str, default: int, smallest: int = 0) -> int:
        """WrongUsage when it is no whole number from `smallest` up to the largest of eight bytes."""
        if short not in self.options:
            return default
        return whole_number(self.options[short], f"-{short}", smallest)

    def ledger_id(self, short: str) -> int:
        """WrongUsage when it is missing."""
        if short not in self.options:
            raise WrongUsage(f"Must specify a ledger id: -{short} <id>")
        return ledger_id_in(self.options[short], f"-{short}")


def whole_number(text: str, what: str, smallest: int = 0) -> int:
    try:
        value = int(text)
    except ValueError:
        value = smallest - 1
    if not smallest <= value <= LONG_MAX:
        raise WrongUsage(f"invalid value for {what} : {text}: expected a whole number from {smallest}")
    return value


def ledger_id_in(text: str, what: str) -> int:
    """A ledger id in decimal, or in hexadecimal with 0x before it."""
    if text[:2] in ("0x", "0X"):
        try:
            text = str(int(text, 16))
        except ValueError:
            raise WrongUsage(f"invalid value for {what} : {text}: expected a ledger id") from None
    return whole_number(text, what)


def parse(options: Sequence[Option], words: Sequence[str]) -> Given:
    """WrongUsage for an option that is none of these, or that lacks its value. `--` ends the options."""
    given: dict[str, str] = {}
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            arguments.extend(rest)
        elif len(word) > 1 and word.startswith("-"):
            option = _find(options, word)
            given[option.short] = _value(option, options, rest)
        else:
            arguments.append(word)
    return Given(given, tuple(arguments))


def parse_leading(options: Sequence[Option], words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The options before the first word that is none, each as often as it comes, and the words from there on. WrongUsage."""
    given: list[tuple[str, str]] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = _find(options, rest.pop(0))
        given.append((option.short, _value(option, options, iter(rest[:1]))))
        rest = rest[1:] if option.takes else rest
    return given, rest


def _find(options: Sequence[Option], word: str) -> Option:
    """The option with this name, with one dash or two; a beginning of a long name counts when only one option has it."""
    name = word.lstrip("-")
    for option in options:
        if name in (option.short, option.long):
            return option
    begun = [option for option in options if name and option.long.startswith(name)]
    if len(begun) != 1:
        known = (f"-{each}" for option in options for each in (option.short, option.long) if each)
        raise WrongUsage(f"Unrecognized option: {word}.{did_you_mean(f'-{name}', known)}")
    return begun[0]


def _value(option: Option, options: Sequence[Option], rest: Iterator[str]) -> str:
    if not option.takes:
        return ""
    value = next(rest, None)
    names = {name for each in options for name in (each.short, each.long) if name}
    if value is None or (value.startswith("-") and value.lstrip("-") in names):
        raise WrongUsage(f"Missing argument for option: {option.short}")
    return value
