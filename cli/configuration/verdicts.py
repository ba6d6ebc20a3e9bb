"""Verdicts on every key of Apache's: it takes effect, it means nothing here, or it is refused.

A key takes effect when a settings dataclass of the process reads it. All others are in the tables
`conf/*-keys-without-effect.txt`, each with its reason; a test holds that none is missing. Owns the form of these tables. No
key is ignored in silence.
"""

import enum
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from cli.configuration.keys import apache_broker_keys, keys_of_other_versions
from cli.configuration.loading import CONF, Configuration
from ports.settings import BadSetting, fold, shown_value

BROKER, BOOKIE, PROXY, STANDALONE = "broker", "bookie", "proxy", "standalone"
TABLES: Mapping[str, Sequence[str]] = {
    BROKER: ("broker",),
    STANDALONE: ("broker", "bookkeeper"),
    BOOKIE: ("bookkeeper",),
    PROXY: ("proxy",),
}
"""Tables that judge the keys of each kind of process."""
_READERS = {"broker": "a broker", "bookkeeper": "a bookie", "proxy": "a proxy"}


class Verdict(enum.Enum):
    """Verdict on one key with one value in one kind of process."""

    IN_EFFECT = "takes effect"
    WITHOUT_EFFECT = "means nothing here"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Judged:
    """`reason` is empty for a key that takes effect."""

    key: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    refused: bool
    reason: str
    accepted: tuple[str, ...]
    """Values; `standalone:true` is accepted by a standalone alone."""

    def accepted_by(self, kind: str) -> Iterator[str]:
        for value in self.accepted:
            owner, is_owned, rest = value.partition(":")
            if not (is_owned and owner in TABLES):
                yield value
            elif owner == kind:
                yield rest


def effective_keys(settings: Iterable[type]) -> frozenset[str]:
    """Folded."""
    return frozenset(fold(field.name) for cls in settings for field in fields(cls))


def judge(key: str, value: str, kind: str, effective: frozenset[str]) -> Judged:
    """`key` is a known one. `effective`: what the process reads, folded."""
    if fold(key) in effective:
        return Judged(key, Verdict.IN_EFFECT)
    for name in TABLES[kind]:
        row = table(name).get(key)
        if row is not None:
            refused = row.refused and not any(same_value(value, accepted) for accepted in row.accepted_by(kind))
            return Judged(key, Verdict.REFUSED if refused else Verdict.WITHOUT_EFFECT, row.reason)
    readers = [who for name, who in _READERS.items() if key in table(name) or key in keys_of(name)]
    return Judged(key, Verdict.WITHOUT_EFFECT, f"it is for {' or '.join(readers) or 'another process'}, not for a {kind}")


def judge_all(values: Mapping[str, str], kind: str, settings: Iterable[type]) -> list[Judged]:
    """Verdicts in the order of the names."""
    effective = effective_keys(settings)
    return [judge(key, values[key], kind, effective) for key in sorted(values)]


def settle(configuration: Configuration, kind: str, settings: Sequence[type]) -> list[str]:
    """The keys that are set and mean nothing here, for one note. BadSetting names all that are refused and why."""
    judged = judge_all(configuration.values, kind, settings)
    refused = [
        f"{shown(one.key, configuration.values[one.key])}: {one.reason}" for one in judged if one.verdict is Verdict.REFUSED
    ]
    if refused:
        raise BadSetting("; ".join(refused) + f" (`interpulse config explain {_first_refused(judged)}` says more)")
    return [one.key for one in judged if one.verdict is Verdict.WITHOUT_EFFECT]


def shown(key: str, value: str) -> str:
    """A setting for people and logs: `key=value`, without the value of a secret."""
    return f"{key}={shown_value(key, value)}"


def _first_refused(judged: Iterable[Judged]) -> str:
    return next(one.key for one in judged if one.verdict is Verdict.REFUSED)


def same_value(one: str, other: str) -> bool:
    """Whether Apache's would read both alike: numbers as numbers, lists without spaces and order, nothing as `null`."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> object:
    text = text.strip()
    if text in ("", "null"):
        return ""
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        return float(text)
    if "," in text:
        return frozenset(part.strip() for part in text.split(","))
    return text.lower() if text.lower() in ("true", "false") else text


def keys_of(name: str) -> frozenset[str]:
    """Names that Apache's `broker`, `bookkeeper` or `proxy` knows."""
    newest = apache_broker_keys() if name == "broker" else (CONF / f"apache-{name}-keys.txt").read_text().split()
    return frozenset((*newest, *keys_of_other_versions(name)))


@functools.cache
def table(name: str) -> Mapping[str, _Row]:
    """Rows of `broker`, `bookkeeper` or `proxy`, by key. ValueError for a line that cannot be read."""
    rows: dict[str, _Row] = {}
    refused, reason = False, ""
    for text in (CONF / f"{name}-keys-without-effect.txt").read_text().splitlines():
        if not text or text.startswith("#"):
            continue
        if text.startswith("["):
            mark, _, reason = text.partition("] ")
            if mark not in ("[refused", "[no effect") or not reason:
                raise ValueError(f"{name}: {text}: expected [refused] or [no effect], and the reason")
            refused = mark == "[refused"
            continue
        key, _, accepted = (part.strip() for part in text.partition("="))
        if key in rows:
            raise ValueError(f"{name}: {key} stands twice")
        rows[key] = _Row(refused, reason, (_default(name, key), *filter(None, (part.strip() for part in accepted.split("|")))))
    return rows


def _default(name: str, key: str) -> str:
    found = apache_broker_keys().get(key) if name == "broker" else None
    return keys_of_other_versions(name).get(key, "") if found is None else found.default
