"""Bundles and who owns them: Apache's cut and hash, and that two brokers never serve one bundle at a time."""

import asyncio
import logging
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError
from broker.service.errors import BundleNotFound, TopicElsewhere
from broker.service.ownership.bundles import Bundle, Bundles, parse_bundles, place, topic_hash
from broker.service.ownership.ownership_machine import (
    CloseTopics,
    Effect,
    Event,
    Holding,
    Lost,
    OwnershipMachine,
    Refused,
    Release,
    Released,
    Take,
    Taken,
    TopicsClosed,
    Unwanted,
    Wanted,
)
from broker.service.topic_name import NamespaceName, TopicName
from metadata.sessions import SessionEvent
from metadata.store import MetadataError
from tests.broker.service.houses import TOPICS, a_cluster, play

DEFAULT = NamespaceName("public", "default")
BUNDLE = Bundle(DEFAULT, 0, 0x40000000)
FOUR = b'{"bundles":{"boundaries":["0x00000000","0x40000000","0x80000000","0xc0000000","0xffffffff"],"numBundles":4}}'


# ---- Where a topic is


def test_the_hash_is_the_crc32_that_java_and_zip_know() -> None:
    assert topic_hash("123456789") == 0xCBF43926


@given(st.sets(st.integers(1, 0xFFFFFFFE), max_size=8), st.text(alphabet="abc-123", min_size=1, max_size=8))
def test_every_topic_is_in_exactly_one_bundle(edges: set[int], local_name: str) -> None:
    cut = Bundles(DEFAULT, (0, *sorted(edges), 0xFFFFFFFF))
    topic = TopicName.parse(f"persistent://public/default/{local_name}")
    assert [bundle for bundle in cut.all() if bundle.covers(topic)] == [cut.of(topic)]
    assert cut.named(cut.of(topic).range) == cut.of(topic)
    assert not cut.of(topic).covers(TopicName.parse(f"persistent://public/other/{local_name}"))


def test_bundles_are_read_as_apache_writes_them() -> None:
    cut = parse_bundles(DEFAULT, FOUR)
    assert cut is not None
    assert [bundle.range for bundle in cut.all()][::3] == ["0x00000000_0x40000000", "0xc0000000_0xffffffff"]
    assert cut.all()[0].path == "/namespace/public/default/0x00000000_0x40000000"
    assert parse_bundles(DEFAULT, b"{}") is None
    for damaged in (b"[", b'{"bundles":1}', b'{"bundles":{"boundaries":["0x00000000","0x1"]}}'):
        with pytest.raises(MetadataError, match="unreadable bundles"):
            parse_bundles(DEFAULT, damaged)


@given(st.integers(1, 9), st.integers(1, 40), st.randoms())
def test_bundles_are_dealt_evenly_in_whatever_order_the_brokers_are_named(brokers: int, bundles: int, rng: Random) -> None:
    names = [f"broker-{index}:8080" for index in range(brokers)]
    cut = Bundles(DEFAULT, (*range(0, bundles * 1000, 1000), 0xFFFFFFFF))
    placed = {bundle: place(cut, bundle, names) for bundle in cut.all()}
    counts = [list(placed.values()).count(name) for name in names]
    assert max(counts) - min(counts) <= 1
    rng.shuffle(names)
    assert placed == {bundle: place(cut, bundle, names) for bundle in cut.all()}
    assert place(cut, cut.all()[0], []) is None


# ---- The machine: any order of answers, losses and wishes


class ManyBrokers:
    """Machines over one node, whose answers come in any order; a broker whose session is over hears of it before."""

    def __init__(self, count: int) -> None:
        self.machines = [OwnershipMachine() for _ in range(count)]
        self.pending: list[tuple[int, Effect]] = []
        self.open_topics: set[int] = set()
        self.owner: int | None = None

    def tell(self, broker: int, event: Event) -> None:
        for effect in self.machines[broker].handle(event):
            if isinstance(effect, Take | CloseTopics | Release):
                self.pending.append((broker, effect))
        self.check()

    def answer(self, index: int) -> None:
        broker, effect = self.pending.pop(index % len(self.pending))
        match effect:
            case Take():
                taken = self.owner is None
                self.owner = broker if taken else self.owner
                self.tell(broker, Taken(BUNDLE) if taken else Refused(BUNDLE))
            case CloseTopics():
                self.open_topics.discard(broker)
                self.tell(broker, TopicsClosed(BUNDLE))
            case Release():
                self.owner = None if self.owner == broker else self.owner
                self.tell(broker, Released(BUNDLE))

    def serve(self, broker: int) -> None:
        """A client comes for a topic."""
        if self.machines[broker].holding(BUNDLE) is Holding.OWNED:
            self.open_topics.add(broker)

    def lose(self, broker: int) -> None:
        self.tell(broker, Lost(BUNDLE))
        if self.machines[broker].holding(BUNDLE) is not Holding.TAKING:
            self.owner = None if self.owner == broker else self.owner

    def check(self) -> None:
        for machine in self.machines:
            machine.check_invariants()
        serving = [index for index, machine in enumerate(self.machines) if machine.holding(BUNDLE) is Holding.OWNED]
        assert serving in ([], [self.owner])
        for broker in self.open_topics:
            assert self.machines[broker].holding(BUNDLE) in (Holding.OWNED, Holding.CLOSING), "released before it was closed"


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.sampled_from(["want", "unwant", "lose", "serve", "answer", "answer"]), st.integers(0, 5)), max_size=60
    )
)
def test_no_order_of_answers_lets_two_serve_or_one_serve_what_it_gave_away(steps: list[tuple[str, int]]) -> None:
    brokers = ManyBrokers(3)
    for what, number in steps:
        match what:
            case "want":
                brokers.tell(number % 3, Wanted(BUNDLE))
            case "unwant":
                brokers.tell(number % 3, Unwanted(BUNDLE))
            case "lose":
                brokers.lose(number % 3)
            case "serve":
                brokers.serve(number % 3)
            case "answer" if brokers.pending:
                brokers.answer(number)
    while brokers.pending:
        brokers.answer(0)
    settled = {machine.holding(BUNDLE) for machine in brokers.machines}
    assert settled <= {Holding.FREE, Holding.OWNED}, "an unanswered bundle would keep its clients waiting for ever"


# ---- The driver: brokers on one tree


def test_all_brokers_name_the_same_owner_and_only_the_owner_serves() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owners = [await first.follow(topic, houses) for topic in TOPICS]
            assert owners == [await second.follow(topic, houses) for topic in TOPICS]
            assert {first, second} == set(owners)
            for topic, owner in zip(TOPICS, owners, strict=True):
                await owner.load(topic)
                with pytest.raises(TopicElsewhere):
                    await (second if owner is first else first).load(topic)

    play(scenario)


def test_an_unloaded_bundle_is_free_and_its_topics_are_closed() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owner = await first.follow(TOPICS[0], houses)
            other = second if owner is first else first
            await owner.load(TOPICS[0])
            cut = parse_bundles(DEFAULT, FOUR)
            assert cut is not None
            found = await other.service.lookup.owners.unload(DEFAULT, cut.of(TOPICS[0]).range)
            assert found is not None
            assert found.address == owner.advertised
            assert await owner.service.lookup.owners.unload(DEFAULT, cut.of(TOPICS[0]).range) is None
            assert owner.service.catalogue.loaded_topic(TOPICS[0]) is None
            assert await first.store.get(cut.of(TOPICS[0]).path) is None
            with pytest.raises(BundleNotFound):
                await owner.service.lookup.owners.unload(DEFAULT, "0x00000000_0x00000001")

    play(scenario)


def troubles(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    """Lines of warnings and worse, each with its traceback."""
    return [(record.getMessage(), record.exc_info) for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("waits", ["for the load", "in vain"])
def test_an_unload_that_meets_a_load_says_in_one_line_what_it_did_not_do_and_else_nothing(
    caplog: pytest.LogCaptureFixture, waits: str
) -> None:
    """The load is refused, as the broker has given the topic up by then."""

    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await house.follow(TOPICS[0], houses)
            house.topics.wait = opens = asyncio.Event()
            loading = asyncio.create_task(house.load(TOPICS[0]))
            await asyncio.sleep(0.1)
            assert house.topics.opened
            closing = asyncio.create_task(house.service.lifecycle.close_topics(lambda topic: topic == TOPICS[0]))
            house.service.lookup.owners.serves = lambda topic: False  # type: ignore[method-assign]
            if waits == "for the load":
                opens.set()
            await closing
            opens.set()
            with pytest.raises(BrokerError):
                await loading
            assert not house.service.catalogue.loaded_topics

    play(scenario)
    found = troubles(caplog)
    assert len(found) == (waits == "in vain"), found
    assert all("took more than 60 s" in text and trace is None for text, trace in found), found


def test_a_lost_session_closes_the_topics_and_the_other_broker_takes_them() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            (topic, *_) = [topic for topic in TOPICS if await first.follow(topic, houses) is first]
            await first.load(topic)
            first.sessions.tell(SessionEvent.SESSION_LOST)
            assert not first.service.lookup.owners.serves(topic)
            first.shared.end_session(first.store.session, 0)
            with pytest.raises(TopicElsewhere):
                await first.load(topic)
            assert await second.follow(topic, houses) is second
            await second.load(topic)
            assert first.service.catalogue.loaded_topic(topic) is None

    play(scenario)


def test_a_broker_that_stops_gives_its_bundles_away_one_by_one() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            for topic in TOPICS:
                await (await first.follow(topic, houses)).load(topic)
            await first.members.leave()
            await first.service.lookup.owners.close()
            assert not first.service.catalogue.loaded_topics
            assert [await first.follow(topic, houses) for topic in TOPICS] == [second] * len(TOPICS)

    play(scenario)


def test_the_last_broker_that_stops_says_so() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (only,) = houses.values()
            await only.members.leave()
            await only.service.lookup.owners.close()
            with pytest.raises(BrokerError, match="No broker is there"):
                await only.service.lookup.find(TOPICS[0])
            await asyncio.sleep(0)

    play(scenario)
