"""One topic read in all ways, and what differs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from .acknowledging import SUBSCRIPTION, acknowledged
from .client_side import COLUMNS, as_client_tells, consumed
from .messages import Kind, Row
from .model import Part, first_difference, rows_of
from .queries import WHOLE, Outcome, Query, Way, any_query, any_reading, read
from .writer import Site, Topic


class Differs(AssertionError):
    """The text says the seed, the query and the first row."""


@dataclass(slots=True)
class Figures:
    counts: Counter[str] = field(default_factory=Counter)


def look(rng: Random, site: Site, topic: Topic, ways: Sequence[Way], figures: Figures) -> None:
    """While it is written: up to the first open transaction of each partition."""
    parts = [part for part in topic.parts if part.stored]
    for part in parts:
        end = part.first_open or _end_of(part)
        text = f"{end[0]}:{end[1]}"
        query = replace(WHOLE, options={**WHOLE.options, "endingOffsets": text}, ends={part.topic: end})
        expected = [row for row in rows_of(part) if query.wants(row)]
        _check(rng, site, topic, query, expected, ways, figures, part.topic)
        figures.counts["looks while it was written"] += 1


def _end_of(part: Part) -> tuple[int, int]:
    ledger_id, entry_id = max(each.place for each in part.stored)
    return ledger_id, entry_id + 1


def expected_rows(topic: Topic) -> list[Row]:
    return [row for part in topic.parts for row in rows_of(part, topic.ledgers.get(part.topic))]


def check(rng: Random, site: Site, topic: Topic, ways: Sequence[Way], queries: int, figures: Figures) -> None:
    expected = expected_rows(topic)
    if not any(each.sent.harms_clients for part in topic.parts for each in part.stored):
        _check_client(site, topic, expected, figures)
    figures.counts["topics"] += 1
    figures.counts["rows of topics"] += len(expected)
    limits = rng.choice(({}, {"maxMessagesPerTrigger": str(1 + len(expected) // rng.randint(1, 4))}))
    _check(rng, site, topic, replace(WHOLE, options={**WHOLE.options, **limits}), expected, (*ways, Way.STREAM), figures)
    for _ in range(queries):
        query = any_query(rng, topic.parts, expected, bool(topic.ledgers))
        wanted = [row for row in expected if query.wants(row)]
        _check(rng, site, topic, query, wanted, ways, figures)
    left = acknowledged(rng, site, topic.parts, expected)
    query = replace(WHOLE, options={**WHOLE.options, "unacknowledgedBy": SUBSCRIPTION})
    _check(rng, site, topic, query, left, ways, figures)
    figures.counts["subscriptions with holes"] += 1


def _check_client(site: Site, topic: Topic, expected: list[Row], figures: Figures) -> None:
    """Compares with Apache's client, which alone tells when a message was published."""
    for part in topic.parts:
        last = max(row["message_id"][:2] for row in expected if row["topic"] == part.topic)
        theirs = {row["message_id"]: row for row in consumed(site.client, part.topic, last)}
        odd = {each.place for each in part.stored if each.sent.is_odd_to_clients}
        these = [row for row in expected if row["topic"] == part.topic and not row["error"]]
        ours = [row for row in these if row["message_id"][:2] not in odd]
        for row in ours:
            if row["message_id"] in theirs:
                row.setdefault("publish_time", theirs[row["message_id"]]["publish_time"])
        known = {row["message_id"] for row in ours}
        got = [row for row in theirs.values() if row["message_id"] in known]
        figures.counts["messages from the client"] += len(got)
        difference = first_difference([as_client_tells(row) for row in ours], got, COLUMNS)
        if difference:
            raise Differs(f"seed {topic.recipe.seed}, {part.topic}, the model and Apache's client: {difference}")


def _check(
    rng: Random,
    site: Site,
    topic: Topic,
    query: Query,
    wanted: list[Row],
    ways: Sequence[Way],
    figures: Figures,
    name: str = "",
) -> None:
    where = {"service.url": site.server.broker_url, "admin.url": site.server.web_url, "topic": name or topic.name}
    where["pollTimeoutMs"] = "10000"
    bad = next((row for row in wanted if row["error"]), None)
    rows = [row for row in wanted if not row["error"]] if query.mode == "DROPMALFORMED" else wanted
    size = sum(len(each.sent.section) for part in topic.parts for each in part.stored)
    names = [part.topic for part in topic.parts]
    first: Outcome | None = None
    for way in ways:
        reading = any_reading(rng, way, size)
        said = f"seed {topic.recipe.seed}, {reading}, {query}"
        outcome = read(query, where, reading)
        figures.counts[f"reads, {way.value}"] += 1
        figures.counts[f"rows, {way.value}"] += len(outcome.rows)
        if query.mode == "FAILFAST" and bad is not None:
            if "Undecodable" not in outcome.error:
                raise Differs(f"{said}\n  no error of {bad['message_id']}: {outcome.error or len(outcome.rows)}")
            continue
        if outcome.error:
            raise Differs(f"{said}\n  {outcome.error}")
        if way is Way.STREAM:  # a batch of it has some of each topic; within a topic all are in order
            outcome.rows.sort(key=lambda row: names.index(row["topic"]))
        difference = first_difference(rows, outcome.rows, query.columns)
        if difference is None and first is not None:
            difference = first_difference(first.rows, outcome.rows, query.columns)
        if difference:
            raise Differs(f"{said}\n  {difference}")
        first = first or outcome


def features(topic: Topic) -> set[str]:
    """Features of a topic, out of all possible ones: a run can say what it had."""
    stored = [each for part in topic.parts for each in part.stored]
    kinds = {each.sent.kind for each in stored}
    ledgers = {each.place[0] for each in stored}
    found = {
        "partitions": topic.recipe.partitions > 0,
        "deduplication": topic.recipe.deduplicates,
        "a trimmed head": bool(topic.ledgers),
        "several ledgers": len(ledgers) > len(topic.parts),
        "chunks": Kind.CHUNK in kinds,
        "markers": Kind.NOTHING in kinds,
        "records that cannot be decoded": Kind.ERROR in kinds,
        "transactions": any(part.has_transactions for part in topic.parts),
        "aborted transactions": any(not value for part in topic.parts for value in part.ended.values()),
        "Apache's client as producer": any(not each.sent.section for each in stored),
        "batches that lie": any(each.sent.harms_clients for each in stored),
    }
    return {name for name, is_there in found.items() if is_there}
