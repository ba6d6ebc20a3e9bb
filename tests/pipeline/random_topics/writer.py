"""The steps of a recipe, done to a topic of a real server; what was stored is kept for the model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pulsar

from tests.clients.python_client import until
from tests.clients.server_process import Ready
from wire.generated.pulsar_api_pb2 import NONE, REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST
from wire.payloads import payload_section

from . import client_side
from .admin import ask
from .messages import Author, Kind, Sent, Taste, chunks, single
from .model import Part, Stored
from .peer import NOT_STORED, Peer
from .recipe import Compact, End, Look, Recipe, Send, SendByClient, Step, Unload

_PLAIN = Taste((20,), (0,), (NONE,), False, False, False, False)
KEEPS = "keeps"
"""A subscription that keeps what is there: of a namespace without retention."""


@dataclass(slots=True)
class Topic:
    recipe: Recipe
    name: str
    parts: list[Part]
    ledgers: dict[str, frozenset[int]] = field(default_factory=dict)
    """Ledgers left in each trimmed partition."""


@dataclass(frozen=True, slots=True)
class Site:
    server: Ready
    client: pulsar.Client
    keys: pulsar.CryptoKeyReader | None


def path_of(topic: str) -> str:
    return topic.replace("://", "/")


def made(site: Site, recipe: Recipe, namespaces: tuple[str, str]) -> Topic:
    """The topic, and nothing in it. `namespaces`: one that keeps everything, and one that keeps what has to be."""
    name = f"persistent://{namespaces[recipe.is_trimmed]}/random-{recipe.seed}"
    names = [f"{name}-partition-{number}" for number in range(recipe.partitions)] or [name]
    path = path_of(name)
    if recipe.partitions:
        ask(site.server, f"{path}/partitions", recipe.partitions, "PUT")
    else:
        ask(site.server, path, method="PUT")
    ask(site.server, f"{path}/subscription/{KEEPS}", {"ledgerId": -1, "entryId": -1}, "PUT")
    if recipe.deduplicates:
        ask(site.server, f"{path}/deduplicationEnabled", True, "POST")
        for each in names:
            until(lambda each=each: ask(site.server, f"{path_of(each)}/stats")["deduplicationStatus"] == "Enabled")  # type: ignore[misc]
    return Topic(recipe, name, [Part(each) for each in names])


def phase(site: Site, topic: Topic, number: int, look: Callable[[Topic], None]) -> None:
    for step in topic.recipe.phases[number]:
        _do(site, topic, step, look)


def _do(site: Site, topic: Topic, step: Step, look: Callable[[Topic], None]) -> None:
    match step:
        case Send(partition, entries):
            _send(site, topic.parts[partition], entries)
        case SendByClient(partition):
            part = topic.parts[partition]
            part.stored += client_side.send(site.client, part.topic, step, site.keys)
        case End(txn, is_committed):
            _end(site, topic, txn, is_committed)
        case Unload():
            ask(site.server, f"{path_of(topic.name)}/unload", method="PUT")
        case Compact():
            _compact(site, topic)
        case Look():
            look(topic)


def _send(site: Site, part: Part, entries: tuple[tuple[str, Sent], ...]) -> None:
    with Peer(site.server.broker_url, part.topic) as peer:
        places = peer.send(entries)
    for (_, sent), place in zip(entries, places, strict=True):
        assert (place == NOT_STORED) == sent.is_repeat, f"{part.topic}: a repeat, or none, at {place}"
        if place != NOT_STORED:
            part.stored.append(Stored(place, sent))


def _end(site: Site, topic: Topic, txn: int, is_committed: bool) -> None:
    for part in topic.parts:
        if any(each.sent.txn == txn for each in part.stored):
            with Peer(site.server.broker_url, part.topic) as peer:
                peer.end(txn, is_committed)
            part.ended[txn] = is_committed


def _compact(site: Site, topic: Topic) -> None:
    for part in topic.parts:
        path = f"{path_of(part.topic)}/compaction"
        if part.stored and part.first_open is None:
            ask(site.server, path, method="PUT")
            until(lambda path=path: ask(site.server, path)["status"] != "RUNNING")  # type: ignore[misc]


def finished(site: Site, topic: Topic) -> None:
    """Sends a last message to each partition, at which consumers stop; trims the head of topics that are to be trimmed."""
    rng = Random(topic.recipe.seed)
    for part in topic.parts:
        _send(site, part, (("last", single(rng, Author("last"), _PLAIN, "the last")),))
        if rng.random() < 0.3:
            _send(site, part, _nothing(rng))
        if topic.recipe.is_trimmed:
            _trim(site, topic, part)


def _nothing(rng: Random) -> tuple[tuple[str, Sent], ...]:
    """Entries that are no row: the beginning of a message in chunks, and a marker."""
    about = Author("of the cluster").metadata(rng)
    about.marker_type = REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST
    marker = Sent(payload_section(about, b""), about.sequence_id, kind=Kind.NOTHING)
    begun = chunks(rng, Author("f"), _PLAIN, "without an end", 3)[: rng.randrange(3)]
    return (*(("f", each) for each in begun), ("of the cluster", marker))


def _trim(site: Site, topic: Topic, part: Part) -> None:
    """Trims up to a ledger in the middle: no subscription needs the ledgers before it."""
    ledgers = sorted({each.place[0] for each in part.stored})
    first = ledgers[len(ledgers) // 2]
    path = path_of(part.topic)
    ask(site.server, f"{path}/subscription/{KEEPS}/resetcursor", {"ledgerId": first, "entryId": 0, "batchIndex": -1}, "POST")
    ask(site.server, f"{path}/trim", method="POST")
    until(lambda: ledgers_of(site, part)[0] >= first)
    topic.ledgers[part.topic] = frozenset(ledgers_of(site, part))
    assert first in topic.ledgers[part.topic]


def ledgers_of(site: Site, part: Part) -> list[int]:
    return [each["ledgerId"] for each in ask(site.server, f"{path_of(part.topic)}/internalStats")["ledgers"]]
