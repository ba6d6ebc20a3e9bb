"""The options of the sink, checked before anything is written. Pure.

Names are those of StreamNative's pulsar-spark where it has them; Spark does not tell upper case from lower in them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..addresses import address
from ..errors import WrongOption
from ..names import full_name
from ..options import Access
from .entries import COMPRESSIONS, Limits
from .routing import HASHES
from .values.value_column import KINDS

AT_LEAST_ONCE, DEDUPLICATION, TRANSACTIONS = "AT-LEAST-ONCE", "DEDUPLICATION", "TRANSACTIONS"
GUARANTEES = (AT_LEAST_ONCE, DEDUPLICATION, TRANSACTIONS)
KEY_ENCODINGS = ("SEPARATED", "INLINE")
BATCH_BYTES, BATCH_MESSAGES = 128 << 10, 10_000
PENDING_BYTES = 32 << 20
TRANSACTION_MS = 600_000

_KNOWN = (
    *("service.url", "admin.url", "topic", "guarantee", "writeId", "createTopic", "valueSchema", "transactionTimeoutMs"),
    *("keySchema", "keyValueEncoding"),
    *("commitsNamespace", "pendingBytes", "pulsar.producer.compressionType", "pulsar.producer.hashingScheme"),
    *("pulsar.producer.batchingMaxBytes", "pulsar.producer.batchingMaxMessages", "pulsar.client.authParams"),
    *("pulsar.client.tlsTrustCertsFilePath", "pollTimeoutMs"),
)
_SPARKS_OWN = {"path", "checkpointlocation", "queryname"}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """`topic` "": each row names its own. `write_id` "": this write is like no other."""

    access: Access
    topic: str
    guarantee: str
    write_id: str
    creates_topic: bool
    value_schema: str
    key_schema: str
    """Other than NONE: messages are pairs of key and value, with a schema of both."""
    is_key_separated: bool
    transaction_ms: int
    commits_namespace: str
    pending_bytes_max: int
    compression: int
    hashing: str
    limits: Limits


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """WrongOption names the option, what it is, and what is expected."""
    options = _Given(given)
    topic = options.text("topic")
    guarantee = options.choice("guarantee", GUARANTEES)
    return SinkOptions(
        access=_access(options, guarantee),
        topic=full_name(topic) if topic else "",
        guarantee=guarantee,
        write_id=_name(options, "writeId"),
        creates_topic=options.choice("createTopic", ("FALSE", "TRUE")) == "TRUE",
        value_schema=options.choice("valueSchema", KINDS),
        key_schema=options.choice("keySchema", KINDS),
        is_key_separated=options.choice("keyValueEncoding", KEY_ENCODINGS) == "SEPARATED",
        transaction_ms=options.number("transactionTimeoutMs", TRANSACTION_MS),
        commits_namespace=_namespace(options, full_name(topic or "any")),
        pending_bytes_max=options.number("pendingBytes", PENDING_BYTES),
        compression=COMPRESSIONS[options.choice("pulsar.producer.compressionType", tuple(COMPRESSIONS))],
        hashing=options.choice("pulsar.producer.hashingScheme", HASHES),
        limits=Limits(
            options.number("pulsar.producer.batchingMaxBytes", BATCH_BYTES),
            options.number("pulsar.producer.batchingMaxMessages", BATCH_MESSAGES),
        ),
    )


class _Given:
    """Given options by folded name. WrongOption for unknown ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value.strip() for name, value in given.items()}
        known = {name.lower() for name in _KNOWN} | _SPARKS_OWN
        for name in self._given:
            if name not in known:
                raise WrongOption(f"option {name}: not known; of a sink there are {', '.join(_KNOWN)}")

    def text(self, name: str) -> str:
        return self._given.get(name.lower(), "")

    def number(self, name: str, default: int) -> int:
        value = self.text(name)
        if value and (not re.fullmatch(r"\d{1,18}", value) or int(value) < 1):
            raise WrongOption(f"option {name}={value}: expected a whole number from 1 on")
        return int(value) if value else default

    def choice(self, name: str, among: tuple[str, ...]) -> str:
        value = self.text(name).upper() or among[0]
        if value not in among:
            raise WrongOption(f"option {name}={value}: expected one of {', '.join(among).lower()}")
        return value


def _access(options: _Given, guarantee: str) -> Access:
    service_url = address("service.url", options.text("service.url"))
    admin_url = address("admin.url", options.text("admin.url")) if options.text("admin.url") else ""
    if guarantee != AT_LEAST_ONCE and not admin_url:
        raise WrongOption(f"option admin.url: is needed with guarantee={guarantee.lower()}, for example http://localhost:8080")
    return Access(
        service_url,
        admin_url,
        options.text("pulsar.client.authParams"),
        options.text("pulsar.client.tlsTrustCertsFilePath"),
        options.number("pollTimeoutMs", 30_000) / 1000,
    )


def _name(options: _Given, option: str) -> str:
    value = options.text(option)
    if value and not re.fullmatch(r"[\w.-]{1,128}", value):
        raise WrongOption(f"option {option}={value}: expected letters, digits, '_', '.' and '-', 128 at most")
    return value


def _namespace(options: _Given, topic: str) -> str:
    """`tenant/namespace` of the topics in which it is noted which batch was committed: by default that of the topic."""
    value = options.text("commitsNamespace") or topic.removeprefix("persistent://").rpartition("/")[0]
    if not re.fullmatch(r"[^/]+/[^/]+", value):
        raise WrongOption(f"option commitsNamespace={value}: expected tenant/namespace")
    return value
