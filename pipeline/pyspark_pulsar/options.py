"""The options of the source, checked before anything is asked of a broker. Pure.

Names are those of StreamNative's pulsar-spark where it has them; Spark does not tell upper case from lower in them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .addresses import address
from .errors import WrongOption
from .names import full_name
from .places import Chosen, Places, chosen_places
from .positions import EARLIEST, LATEST, Place

MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
VALUES = ("SCHEMA", "RAW")
WAYS = ("AUTO", "BROKER")
SPLIT_BYTES = 128 << 20
CHUNK_DISTANCE = 10_000
CLOCKS_AHEAD_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Access:
    """Access to brokers. `auth_params`: `token:...`, `file:///path`, `env:NAME`, or ""."""

    service_url: str
    admin_url: str
    auth_params: str = field(default="", repr=False)
    tls_trust_certs: str = ""
    timeout_seconds: float = 30.0
    """Time for retries to a broker that is away, and for the wait for a message that exists."""


@dataclass(frozen=True, slots=True)
class Between:
    """Limits on messages, beside those on positions: times in milliseconds and the broker's indexes, ends not included."""

    starting_time_ms: int | None = None
    ending_time_ms: int | None = None
    starting_index: int | None = None
    ending_index: int | None = None

    @property
    def has_start(self) -> bool:
        return self.starting_time_ms is not None or self.starting_index is not None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """One of `topics` and `pattern` says what is read. `columns`: those that are made; () means all."""

    access: Access
    topics: tuple[str, ...]
    pattern: str
    starting: Places
    ending: Places
    between: Between
    columns: tuple[str, ...]
    mode: str
    is_typed: bool
    """Whether key and value have the types of the topic's schema; else they are bytes."""
    schema_version: int | None
    """The version that says these types; None for the latest."""
    fails_on_data_loss: bool
    reads_bookies: bool
    """Whether closed ledgers are read straight from bookies, where those can be reached."""
    split_bytes: int
    verifies_checksums: bool
    pushes_filters: bool
    """Whether Spark hands over a batch query's filters. Spark refuses to where its own setting does not allow it."""
    chunk_distance_max: int
    """Number of entries before a message's last chunk in which its others are sought, where another split has them."""
    clocks_ahead_ms: int
    """Allowed lead of a publisher's clock over the brokers', where ledgers are left out because of a starting time."""
    messages_per_trigger_max: int | None
    bytes_per_trigger_max: int | None
    subscription: str
    """Subscription that stands at a stream's position, or whose unacknowledged messages a batch reads."""


def parse_options(given: Mapping[str, str], is_stream: bool) -> SourceOptions:
    """WrongOption names the option, what it is, and what is expected."""
    options = _Options(given)
    options.refuse_unknown()
    chosen = _topics(options)
    between = Between(
        options.time("startingTime"), options.time("endingTime"), options.number("startingIndex"), options.number("endingIndex")
    )
    starting = _places(options, "startingOffsets", LATEST if is_stream and not between.has_start else EARLIEST, chosen)
    ending = _places(options, "endingOffsets", LATEST, chosen)
    _refuse_backwards(options, between)
    if not is_stream:
        _refuse_backward_places(starting, ending)
    return SourceOptions(
        access=_access(options),
        topics=tuple(chosen.topics),
        pattern=chosen.pattern,
        starting=starting,
        ending=ending,
        between=between,
        columns=tuple(name.strip() for name in options.text("columns").split(",") if name.strip()),
        mode=options.choice("mode", MODES),
        is_typed=options.choice("values", VALUES) == "SCHEMA",
        schema_version=options.number("schemaVersion"),
        fails_on_data_loss=options.flag("failOnDataLoss", True),
        reads_bookies=options.choice("readFrom", WAYS) == "AUTO",
        split_bytes=options.number("splitBytes", 1) or SPLIT_BYTES,
        verifies_checksums=options.flag("verifyChecksums", True),
        pushes_filters=options.flag("filterPushdown", False),
        chunk_distance_max=options.number("maxChunkDistance", 1) or CHUNK_DISTANCE,
        clocks_ahead_ms=CLOCKS_AHEAD_MS if (ahead := options.number("clockDifferenceMs")) is None else ahead,
        messages_per_trigger_max=options.number("maxMessagesPerTrigger", 1),
        bytes_per_trigger_max=options.number("maxBytesPerTrigger", 1),
        subscription=options.text("predefinedSubscription" if is_stream else "unacknowledgedBy"),
    )


def _refuse_backwards(options: "_Options", between: Between) -> None:
    """Refuses an end before the start. An end equal to the start is an empty window, and fine."""
    for kind, start, end in (
        ("Time", between.starting_time_ms, between.ending_time_ms),
        ("Index", between.starting_index, between.ending_index),
    ):
        if start is not None and end is not None and end < start:
            first, last = (f"{name}{kind}={options.text(name + kind)}" for name in ("starting", "ending"))
            raise WrongOption(f"options {first} and {last}: the end is before the start")


def _refuse_backward_places(starting: Places, ending: Places) -> None:
    """Refuses an end before the start, for all topics and for named ones. From latest, or up to earliest, reads nothing."""
    of_named = {f" of {topic}": (starting.of(topic), ending.of(topic)) for topic in (*starting.by_topic, *ending.by_topic)}
    for of, (first, end) in {"": (starting.default, ending.default), **of_named}.items():
        if end < first != LATEST and end != EARLIEST:
            raise WrongOption(f"options startingOffsets and endingOffsets: {end}{of}, the end, is before the start, {first}")


def refuse_misplaced(given: Mapping[str, str], is_stream: bool) -> None:
    """WrongOption for what would say which messages are wanted, and does not: one of batches for a stream, and the other way.

    Apart from `parse_options`, since Spark asks for the schema of a stream as for that of a batch.
    """
    options = _Options(given)
    for name in _OF_BATCHES if is_stream else _OF_STREAMS:
        if options.text(name):
            raise WrongOption(f"option {name}={options.text(name)}: of a {'batch, not of a stream' if is_stream else 'stream'}")
    if options.text("unacknowledgedBy"):
        for name in ("startingOffsets", "endingOffsets"):
            if options.text(name):
                raise WrongOption(f"option {name}: with unacknowledgedBy the subscription says where reading starts and ends")


_OF_BATCHES = ("endingOffsets", "unacknowledgedBy")
_OF_STREAMS = ("predefinedSubscription",)
_KNOWN = (
    *("service.url", "admin.url", "topic", "topics", "topicsPattern", "startingOffsets", "endingOffsets", "startingTime"),
    *(
        "endingTime",
        "startingIndex",
        "endingIndex",
        "columns",
        "mode",
        "values",
        "readFrom",
        "schemaVersion",
        "failOnDataLoss",
        "splitBytes",
        "verifyChecksums",
        "maxChunkDistance",
        "clockDifferenceMs",
        "filterPushdown",
    ),
    *("maxMessagesPerTrigger", "maxBytesPerTrigger", "unacknowledgedBy", "predefinedSubscription", "pulsar.client.authParams"),
    *("pulsar.client.tlsTrustCertsFilePath", "pollTimeoutMs", "path"),
)


class _Options:
    """Given options by folded name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def refuse_unknown(self) -> None:
        known = {name.lower() for name in _KNOWN}
        for name in self._given:
            if name not in known:
                raise WrongOption(f"option {name}: not known; there are {', '.join(_KNOWN[:-1])}")

    def text(self, name: str) -> str:
        return self._given.get(name.lower(), "").strip()

    def required(self, name: str, example: str) -> str:
        value = self.text(name)
        if not value:
            raise WrongOption(f"option {name}: is needed, for example {example}")
        return value

    def number(self, name: str, minimum: int = 0) -> int | None:
        value = self.text(name)
        if value and (not re.fullmatch(r"\d{1,18}", value) or int(value) < minimum):
            raise WrongOption(f"option {name}={value}: expected a whole number from {minimum} on")
        return int(value) if value else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name).lower()
        if value not in ("", "true", "false"):
            raise WrongOption(f"option {name}={value}: expected true or false")
        return value == "true" if value else default

    def choice(self, name: str, among: tuple[str, ...]) -> str:
        value = self.text(name).upper() or among[0]
        if value not in among:
            raise WrongOption(f"option {name}={value}: expected one of {', '.join(among)}")
        return value

    def time(self, name: str) -> int | None:
        """Milliseconds, or a time such as 2026-11-22T08:00:00Z (UTC where it has no zone)."""
        value = self.text(name)
        if not value or re.fullmatch(r"\d{1,18}", value):
            return int(value) if value else None
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise WrongOption(f"option {name}={value}: expected milliseconds since 1970, or 2026-11-22T08:00:00Z") from None
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _topics(options: _Options) -> Chosen:
    named = {name: options.text(name) for name in ("topic", "topics", "topicsPattern") if options.text(name)}
    if len(named) != 1:
        raise WrongOption("one of the options topic, topics (with commas between) and topicsPattern is needed, and only one")
    pattern = named.get("topicsPattern", "")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            raise WrongOption(f"option topicsPattern={pattern}: no regular expression: {error}") from None
        return Chosen((), full_name(pattern))
    text = next(iter(named.values()))
    names = [each.strip() for each in text.split(",")] if "topics" in named else [text]
    if not any(names):
        raise WrongOption(f"option topics={text}: there is no name in it")
    return Chosen(tuple(dict.fromkeys(full_name(each) for each in names if each)), "")


def _places(options: _Options, name: str, default: Place, chosen: Chosen) -> Places:
    return chosen_places(name, options.text(name), default, chosen)


def _access(options: _Options) -> Access:
    service_url = address("service.url", options.required("service.url", "pulsar://localhost:6650"))
    admin_url = address("admin.url", options.required("admin.url", "http://localhost:8080"))
    timeout = options.number("pollTimeoutMs", 1)
    return Access(
        service_url,
        admin_url,
        options.text("pulsar.client.authParams"),
        options.text("pulsar.client.tlsTrustCertsFilePath"),
        30.0 if timeout is None else timeout / 1000,
    )
