"""Typed values from the words of a command line, by a command's options; wrong usage is reported in picocli's words.

Pure. Options stand anywhere, `--name=value` is `--name value`, one-letter names may be put together (`-ef`, `-n5`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli.admin.table import Option
from cli.command_line.suggestions import did_you_mean

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1


class WrongUsage(Exception):
    """The command line cannot be understood; the message says which word and what was expected."""


def parse(
    positional_names: Sequence[str], options: Sequence[Option], words: Sequence[str], words_before: int = 0
) -> dict[str, Any]:
    """The values by key: those that were given, defaults, False for flags; positional ones by their lower-case name.

    words_before: how many words of the command line came before, for the index in a message.
    """
    values: dict[str, Any] = {option.key: False for option in options if option.kind == "flag"}
    given, positional = _split(options, words, words_before)
    spread = bool(positional_names) and positional_names[-1].endswith("...")
    if len(positional) > len(positional_names) and not spread:
        index, word = positional[len(positional_names)]
        raise WrongUsage(f"Unmatched argument at index {index}: '{word}'")
    texts = [word for _, word in positional]
    _check_required(positional_names, options, given, len(texts))
    for name, text in zip(positional_names, texts, strict=False):
        values[name.rstrip(".").lower()] = text
    if spread:
        values[positional_names[-1].rstrip(".").lower()] = texts[len(positional_names) - 1 :]
    for option in options:
        if option.key in given:
            values[option.key] = _typed(option, given[option.key])
        elif option.default is not None:
            values[option.key] = _typed(option, [option.default])
    return values


def _split(
    options: Sequence[Option], words: Sequence[str], words_before: int
) -> tuple[dict[str, list[str]], list[tuple[int, str]]]:
    by_name = {name: option for option in options for name in option.names}
    given: dict[str, list[str]] = {}
    positional: list[tuple[int, str]] = []
    waiting = list(enumerate(words, words_before))
    while waiting:
        index, word = waiting.pop(0)
        if word == "--":
            positional += waiting
            break
        if (not word.startswith("-") and word not in by_name) or word == "-":
            positional.append((index, word))
            continue
        option, text, rest = _match(by_name, word)
        if rest:
            waiting.insert(0, (index, rest))
        if option.kind != "flag" and text is None:
            if not waiting:
                raise WrongUsage(f"Missing required parameter for option '{option.names[0]}' ({label(option)})")
            _, text = waiting.pop(0)
            if text in by_name:
                raise WrongUsage(f"Expected parameter for option '{option.names[0]}' but found '{text}'")
        given.setdefault(option.key, []).append("true" if text is None else text)
    return given, positional


def _match(by_name: Mapping[str, Option], word: str) -> tuple[Option, str | None, str]:
    """Option, its value when that is in the same word, and letters of further flags (with a dash)."""
    if word in by_name:
        return by_name[word], None, ""
    name, equals, text = word.partition("=")
    if equals and name in by_name:
        return by_name[name], text, ""
    option = by_name.get(word[:2]) if not word.startswith("--") else None
    if option is None:
        raise WrongUsage(f"Unknown option: '{word}'.{did_you_mean(name, by_name)}")
    if option.kind != "flag":
        return option, word[2:], ""
    if "-" + word[2:3] not in by_name:
        raise WrongUsage(f"Unknown option: '-{word[2:]}' (while processing option: '{word}')")
    return option, None, "-" + word[2:]


def label(option: Option) -> str:
    """`--size=<size>`, for people."""
    name = max(option.names, key=len)
    return name if option.kind == "flag" else f"{name}=<{option.key}>"


def _check_required(
    names: Sequence[str], options: Sequence[Option], given: Mapping[str, object], positional_count: int
) -> None:
    missing = [label(option) for option in options if option.required and option.key not in given]
    wanted = [f"<{name.lower()}>" for name in names if not name.endswith("...")][positional_count:]
    if missing and not wanted:
        raise WrongUsage(f"Missing required option{'s' if len(missing) > 1 else ''}: {_quoted(missing)}")
    if wanted and not missing:
        raise WrongUsage(f"Missing required parameter{'s' if len(wanted) > 1 else ''}: {_quoted(wanted)}")
    if wanted:
        raise WrongUsage(f"Missing required options and parameters: {_quoted(missing + wanted)}")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _typed(option: Option, texts: Sequence[str]) -> Any:
    kind, _, argument = option.kind.partition("(")
    try:
        if kind in _OF_MANY:
            return _OF_MANY[kind](texts)
        return _OF_ONE[kind](texts[-1]) if not argument else _choice(texts[-1], argument.rstrip(")"))
    except ValueError as error:
        raise WrongUsage(f"Invalid value for option '{max(option.names, key=len)}': {error}") from None


def _choice(text: str, argument: str) -> str:
    allowed = argument.split("|")
    for each in allowed:
        if each.lower() == text.lower():
            return each
    raise ValueError(f"expected one of [{', '.join(allowed)}] (case-insensitive) but was '{text}'")


def _number(limit: int, name: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[-+]?\d+", text) or not -limit - 1 <= int(text) <= limit:
            raise ValueError(f"'{text}' is not {'an' if name == 'int' else 'a'} {name}")
        return int(text)

    return read


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a double") from None


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"'{text}' is not a boolean")
    return text.lower() == "true"


def size_bytes(text: str) -> int:
    """4096, 100K, 10M, 16G, 2T; Apache's ByteUnitUtil."""
    matched = re.fullmatch(r"(-?\d+)([kKmMgGtT]?)", text)
    if not matched:
        raise ValueError(f"Invalid size '{text}'. Valid formats are: (4096, 100K, 10M, 16G, 2T)")
    return int(matched[1]) * SIZES[matched[2].lower()]


def time_seconds(text: str) -> int:
    """Seconds, or 10m, 3h, 7d, 2w, 1y; Apache's RelativeTimeUtil."""
    matched = re.fullmatch(r"(-?\d+)([smhdwyS MHDWY]?)", text)
    if not matched:
        raise ValueError(f"Invalid time '{text}'. Valid formats are: (100, 30s, 10m, 3h, 7d, 2w, 1y)")
    return int(matched[1]) * UNITS[matched[2].lower() or "s"]


def _minutes(text: str) -> int:
    seconds = time_seconds(text)
    return -1 if seconds < 0 else seconds // 60


def _megabytes(text: str) -> int:
    size = size_bytes(text)
    return -1 if size < 0 else size >> 20


def _strings(texts: Sequence[str]) -> list[str]:
    return [part for text in texts for part in text.split(",") if part]


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in filter(None, texts):
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"'{text}': expected KEY=VALUE")
        found[key] = value
    return found


_OF_ONE: Mapping[str, Callable[[str], Any]] = {
    "flag": _bool,
    "string": str,
    "int": _number(INT_MAX, "int"),
    "long": _number(LONG_MAX, "long"),
    "double": _float,
    "bool": _bool,
    "bytes": size_bytes,
    "megabytes": _megabytes,
    "seconds": time_seconds,
    "minutes": _minutes,
    "millis": lambda text: time_seconds(text) * 1000,
}
_OF_MANY: Mapping[str, Callable[[Sequence[str]], Any]] = {
    "list": _strings,
    "texts": list,
    "pairs": _pairs,
    "pairlist": lambda texts: _pairs(_strings(texts)),
}
KINDS = frozenset(_OF_ONE) | frozenset(_OF_MANY) | {"choice"}
