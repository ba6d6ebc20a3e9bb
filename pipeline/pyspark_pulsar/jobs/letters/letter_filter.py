"""Filter of dead letters: conditions of the command line, all of which have to hold. Pure."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import WrongOption
from .letter_causes import Letter

_FORM = re.compile(r"([\w:.-]+?)(!=|!~|=|~)(.*)", re.DOTALL)
_PROPERTY = "property:"
_FIELDS: Mapping[str, Callable[[Letter], str]] = {
    "topic": lambda letter: letter.topic,
    "subscription": lambda letter: letter.subscription,
    "cause": lambda letter: letter.cause,
    "redeliveries": lambda letter: str(letter.redeliveries),
    "key": lambda letter: (letter.key or b"").decode(errors="replace"),
    "value": lambda letter: (letter.value or b"").decode(errors="replace"),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`field=text`, `field!=text`, `field~expression`, `field!~expression`; an expression is looked for anywhere in it."""

    field: str
    sign: str
    text: str

    def holds(self, letter: Letter) -> bool:
        value = _value(letter, self.field)
        is_so = bool(re.search(self.text, value)) if self.sign.endswith("~") else value == self.text
        return is_so != self.sign.startswith("!")


def _value(letter: Letter, field: str) -> str:
    if field.startswith(_PROPERTY):
        return letter.properties.get(field.removeprefix(_PROPERTY), "")
    return _FIELDS[field](letter)


def parse_condition(text: str) -> Condition:
    """WrongOption with what there is."""
    found = _FORM.fullmatch(text)
    if not found or not (found[1] in _FIELDS or found[1].startswith(_PROPERTY)):
        raise WrongOption(f"--where {text}: expected FIELD=TEXT, !=, ~ or !~; of fields {', '.join(_FIELDS)}, property:NAME")
    if found[2].endswith("~"):
        try:
            re.compile(found[3])
        except re.error as error:
            raise WrongOption(f"--where {text}: no regular expression: {error}") from None
    return Condition(found[1], found[2], found[3])


@dataclass(frozen=True, slots=True)
class Filter:
    """All of the conditions; none of them: every letter."""

    conditions: tuple[Condition, ...]

    def holds(self, letter: Letter) -> bool:
        return all(each.holds(letter) for each in self.conditions)

    def digest(self, *more: str) -> str:
        """Tells filters apart."""
        texts = sorted(f"{each.field}{each.sign}{each.text}" for each in self.conditions)
        return hashlib.sha256("\0".join([*texts, *more]).encode()).hexdigest()[:12]


def parse_filter(texts: Sequence[str]) -> Filter:
    return Filter(tuple(parse_condition(each) for each in texts))
