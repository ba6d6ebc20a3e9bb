"""Report on a configuration in a process: every key with its verdict, errors, contradictions. Starts nothing."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.autorecovery import server as autorecovery
from cli.bookie import server as bookie
from cli.broker import server as broker
from cli.configuration.changes import AT_START_ONLY
from cli.configuration.contradictions import contradictions
from cli.configuration.keys import apache_broker_keys, keys_of_other_versions
from cli.configuration.loading import CONF, STANDALONE_CONF, Configuration, known_keys
from cli.configuration.notes import DIFFERENT, form_of, note_of
from cli.configuration.older_names import with_newer_names
from cli.configuration.verdicts import (
    BOOKIE,
    BROKER,
    PROXY,
    STANDALONE,
    Judged,
    Verdict,
    judge_all,
    keys_of,
    same_value,
)
from cli.proxy import server as proxy
from cli.standalone import server as standalone
from ports.properties import MalformedProperties, Property, parse_properties
from ports.settings import BadSetting, fold, known_key, setting_text

SETTINGS: dict[str, Sequence[type]] = {
    BROKER: broker.SETTINGS,
    STANDALONE: standalone.SETTINGS,
    BOOKIE: tuple(dict.fromkeys((*bookie.SETTINGS, *autorecovery.SETTINGS))),
    PROXY: proxy.SETTINGS,
}


@dataclass(frozen=True, slots=True)
class Report:
    """Report on one file; `errors` keep a process from starting, `warnings` do not."""

    kind: str
    values: dict[str, str]
    judged: list[Judged]
    errors: list[str]
    warnings: list[str]


def kind_of(file_name: str) -> str:
    """The process that reads a file of this name; a broker where nothing in the name says so."""
    named = {"standalone": STANDALONE, "bookkeeper": BOOKIE, "bookie": BOOKIE, "bk_server": BOOKIE, "proxy": PROXY}
    return next((kind for word, kind in named.items() if word in file_name), BROKER)


_OF_OTHERS = {
    "client": "pulsar-admin, pulsar-client and pulsar-perf read it; a key that they do not know is another tool's affair",
    "zookeeper": "ZooKeeper reads it; `interpulse zookeeper` takes its keys with --set",
    "rocksdb": "RocksDB reads it, and no process here has one: it is not needed",
    "websocket": "a WebSocket proxy reads it, and there is none here",
    "discovery": "Apache's discovery service reads it, which Apache has no more: `interpulse proxy` takes its place",
    "functions": "a functions worker reads it, and there is none here",
}


def of_another_program(file_name: str) -> str:
    """The program that reads a file of Apache's with this name, if none of the processes here does; else empty."""
    return next((told for word, told in _OF_OTHERS.items() if file_name.startswith(word)), "")


def report(name: str, text: str, overrides: Sequence[str], kind: str) -> Report:
    """Everything at once, where a start would stop at the first error."""
    errors: list[str] = []
    values = _values(name, text, overrides, errors)
    judged = judge_all(values, kind, SETTINGS[kind])
    errors += [f"{one.key}: {one.reason}" for one in judged if one.verdict is Verdict.REFUSED]
    made = _made(Configuration(with_newer_names({**_base(kind), **values})), SETTINGS[kind], errors)
    found = list(contradictions(made, kind))
    errors += [str(one) for one in found if one.ends_start]
    return Report(kind, values, judged, errors, [*_twice(name, text), *(str(one) for one in found if not one.ends_start)])


def _base(kind: str) -> Mapping[str, str]:
    """The settings that stand under any file that a process of this kind is given."""
    if kind != STANDALONE:
        return {}
    return {one.key: one.value for one in parse_properties((CONF / STANDALONE_CONF).read_text())}


def _values(name: str, text: str, overrides: Sequence[str], errors: list[str]) -> dict[str, str]:
    known = known_keys()
    values: dict[str, str] = {}
    given = [(f"{name} line {one.line}", one.key, one.value) for one in _properties(name, text, errors)]
    for where, key, value in [*given, *(("--set", *_split(override)) for override in overrides)]:
        try:
            values[known_key(key, known)] = value
        except BadSetting as error:
            errors.append(f"{where}: {error}")
    return values


def _properties(name: str, text: str, errors: list[str]) -> list[Property]:
    try:
        return parse_properties(text)
    except MalformedProperties as error:
        errors.append(f"{name}: {error}")
        return []


def _split(override: str) -> tuple[str, str]:
    key, _, value = override.partition("=")
    return key.strip(), value.strip()


def _made(configuration: Configuration, classes: Sequence[type], errors: list[str]) -> list[Any]:
    made: list[Any] = []
    for cls in classes:
        try:
            made.append(configuration.settings(cls))
        except BadSetting as error:
            errors.append(str(error))
    return made


def _twice(name: str, text: str) -> Iterator[str]:
    seen: dict[str, Property] = {}
    for one in _properties(name, text, []):
        before = seen.get(one.key)
        if before is not None and not same_value(before.value, one.value):
            yield f"{one.key} stands in line {before.line} and in line {one.line}: the later one counts"
        seen[one.key] = one


@dataclass(frozen=True, slots=True)
class Explanation:
    """One key. Empty defaults: there is none, or it depends on the machine."""

    key: str
    note: str
    """Effect of the setting."""
    form: str
    """Form of a value, with its unit."""
    read_by: tuple[str, ...]
    default: str
    apache_default: str
    why: str
    """Why the default is not Apache's; empty where it is."""
    dynamic: bool
    at_start_only: bool
    """Apache's brokers change it while they run, and here it is read at a start."""
    reasons: tuple[str, ...]
    """Why it has no effect, or when it is refused; of a process each."""


def explain(key: str) -> Explanation:
    """Explanation of a key. BadSetting, with the nearest name, for an unknown key."""
    key = known_key(key, known_keys())
    apache = apache_broker_keys().get(key)
    readers = {kind: found for kind, classes in SETTINGS.items() if (found := field_of(key, classes)) is not None}
    cls, field = next(iter(readers.values()), (None, None))
    default = "" if field is None else setting_text(field.default)
    differs, why = DIFFERENT.get(key, ("", ""))
    return Explanation(
        key,
        "" if cls is None or field is None else note_of(cls, field.name),
        "" if cls is None or field is None else form_of(key, cls, field.name),
        tuple(readers),
        default,
        differs or _apache_default(key, default),
        why,
        apache is not None and apache.dynamic,
        key in AT_START_ONLY,
        tuple(_reasons(key)),
    )


def _apache_default(key: str, default: str) -> str:
    """Apache's default where DIFFERENT has no line: known for brokers, for others ours."""
    apache = apache_broker_keys().get(key)
    if apache is not None:
        return apache.default
    others = (keys_of_other_versions(name).get(key) for name in ("broker", "bookkeeper", "proxy"))
    return next((text for text in others if text is not None), default)


def _reasons(key: str) -> Iterator[str]:
    for kind in (BROKER, BOOKIE, PROXY):
        name = "bookkeeper" if kind == BOOKIE else kind
        if key in keys_of(name):
            (judged,) = judge_all({key: "\0"}, kind, SETTINGS[kind])
            if judged.verdict is not Verdict.IN_EFFECT:
                effect = "refused when it is changed" if judged.verdict is Verdict.REFUSED else "no effect"
                yield f"{kind}: {effect}: {judged.reason}"


def default_of(key: str, classes: Sequence[type]) -> str | None:
    """Default of a key as text; None when none of the dataclasses reads it."""
    found = field_of(key, classes)
    return None if found is None else setting_text(found[1].default)


def field_of(key: str, classes: Sequence[type]) -> tuple[type, dataclasses.Field[Any]] | None:
    """The field that reads the key; None when none of the dataclasses does."""
    for cls in classes:
        for field in dataclasses.fields(cls):
            if fold(field.name) == fold(key):
                return cls, field
    return None
