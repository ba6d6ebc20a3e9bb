"""Parts of what a read brought: answered in the order of publish, and not taken where more than the log is asked."""

import asyncio
from array import array
from collections.abc import Callable

import pytest

from bookkeeper.write.parts import Part
from broker.errors import ServerError
from broker.topic.publish.producer import TopicProducer
from broker.topic.sent_part import SentPart
from managed_ledger.contract import ManagedLedgerError, ManagedLedgerFenced, ManagedLedgerTerminated
from tests.broker.topic.topic_world import ProducerEnd, TopicWorld, run, send_run, settle
from wire.run import SendMix


def mix(*sequence_ids: int) -> SendMix:
    """One entry for each producer id 1, 2, ..."""
    count = len(sequence_ids)
    offsets = array("I", range(0, 40 * (count + 1), 40))
    counts = array("I", [1] * count)
    starts = array("I", range(count + 1))
    ids = array("Q", range(1, count + 1))
    frames = array("Q", range(count + 1))
    return SendMix(
        bytearray(40 * count), offsets, 36, ids, starts, counts, array("B", bytes(count)), frames,
        array("Q", sequence_ids), array("Q", [0] * count),
    )  # fmt: skip


class PartsWorld:
    """A topic whose log takes parts, and answers when the test says so."""

    def __init__(self) -> None:
        self.world = TopicWorld()
        self.world.ledger.hold = True
        self.taken: list[Part] = []
        self.producer: TopicProducer
        self.sink: ProducerEnd

    async def begin(self) -> None:
        self.producer, self.sink = await self.world.producer()

        def take(part: Part) -> bool:
            part.ledger_id, part.first_entry_id = 9, len(self.taken)
            self.taken.append(part)
            return True

        self.world.ledger.take_part = take  # type: ignore[method-assign]

    def take(self, sequence_id: int) -> SentPart | None:
        return self.producer.take_part(mix(sequence_id), 0, 0.0)

    def stored(self, index: int) -> None:
        part = self.taken[index]
        part.source.part_stored(part)

    def failed(self, index: int, error: BaseException) -> None:
        part = self.taken[index]
        part.source.part_failed(part, error)

    @property
    def told(self) -> list[tuple[str, list[int]]]:
        return [(each[0], each[1]) for each in self.sink.heard if each[0] in ("receipts", "send_failed")]


def in_parts_world(scenario: Callable[[PartsWorld], None]) -> None:
    async def work() -> None:
        parts = PartsWorld()
        await parts.begin()
        scenario(parts)
        await settle()

    run(work)


def test_runs_are_answered_after_the_parts_before_them() -> None:
    def scenario(parts: PartsWorld) -> None:
        assert parts.take(0)
        parts.producer.publish(send_run([1], bad_checksum_index=0))
        assert parts.told == []
        parts.stored(0)
        assert parts.told == [("receipts", [0]), ("send_failed", [1])]

    in_parts_world(scenario)


def test_no_part_is_taken_while_a_run_waits() -> None:
    async def work() -> None:
        parts = PartsWorld()
        await parts.begin()
        parts.producer.publish(send_run([0]))
        assert parts.take(1) is None
        parts.world.ledger.release()
        await settle()
        assert parts.take(1) is not None

    run(work)


@pytest.mark.parametrize("change", ["is_closed", "is_encryption_required", "is_held"])
def test_a_producer_that_is_asked_for_more_takes_no_part(change: str) -> None:
    def scenario(parts: PartsWorld) -> None:
        assert parts.take(0) is not None
        setattr(parts.producer, change, True)
        assert parts.take(1) is None
        setattr(parts.producer, change, False)

    in_parts_world(scenario)


@pytest.mark.parametrize("limit", ["message_size_max", "delay_ms_max"])
def test_a_producer_with_a_limit_takes_no_part(limit: str) -> None:
    def scenario(parts: PartsWorld) -> None:
        setattr(parts.producer, limit, 1)
        assert parts.take(0) is None

    in_parts_world(scenario)


def test_after_a_failure_nothing_is_confirmed_and_the_end_answers_the_rest() -> None:
    async def work() -> None:
        parts = PartsWorld()
        await parts.begin()
        for sequence_id in range(3):
            assert parts.take(sequence_id)
        parts.failed(0, ManagedLedgerError("lost"))
        parts.stored(1)
        assert parts.told == [("send_failed", [0])]
        assert parts.take(3) is None
        await settle()  # the topic closes
        parts.stored(2)
        assert parts.told == [("send_failed", [0]), ("send_failed", [1]), ("send_failed", [2])]
        assert not any(each[0] == "receipts" for each in parts.sink.heard)

    run(work)


def test_a_fenced_log_tells_the_client_to_come_back_before_anything_fails() -> None:
    async def work() -> None:
        parts = PartsWorld()
        await parts.begin()
        assert parts.take(0)
        parts.failed(0, ManagedLedgerFenced("another broker has it"))
        assert parts.told == []
        await settle()
        assert [each[0] for each in parts.sink.heard] == ["closed", "send_failed"]

    run(work)


def test_a_part_after_the_end_of_the_topic_sends_its_producer_away() -> None:
    def scenario(parts: PartsWorld) -> None:
        assert parts.take(0)
        parts.failed(0, ManagedLedgerTerminated("it has ended"))
        assert [each[0] for each in parts.sink.heard] == ["closed", "send_failed"]
        assert parts.sink.heard[1][2] is ServerError.SERVICE_NOT_READY

    in_parts_world(scenario)


def test_the_last_append_waits_until_all_parts_are_stored() -> None:
    async def work() -> None:
        parts = PartsWorld()
        await parts.begin()
        assert parts.take(0)
        assert parts.take(1)
        last = parts.producer.last_append()
        assert last is not None
        parts.stored(0)
        assert not last.done()
        parts.stored(1)
        await asyncio.wait_for(last, 1)
        assert parts.producer.last_append() is None

    run(work)


def test_a_message_published_in_parts_is_counted() -> None:
    def scenario(parts: PartsWorld) -> None:
        assert parts.take(0)
        assert (parts.producer.counters.messages, parts.producer.counters.payload_bytes) == (1, 4)

    in_parts_world(scenario)
