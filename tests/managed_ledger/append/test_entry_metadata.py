"""Broker entry metadata (PIP-70): a time and an index in front of each entry, and the index goes on wherever it was left."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from managed_ledger.append.entry_metadata import INDEX_PROPERTY
from managed_ledger.append.listeners import ConfirmedListeners
from managed_ledger.contract import EARLIEST, ManagedLedger, ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from managed_ledger.settings import BROKER_ENTRY_METADATA_INTERCEPTORS, ManagedLedgerSettings
from tests.wire.frame_samples import metadata, section
from wire.payloads import MAGIC_BROKER_ENTRY_METADATA, broker_entry_metadata, split_section, verify
from wire.position import Position

from ..fake_ledgers import batch, payloads
from ..ledger_world import MANY, NAME, World, run, small, trimming

TIMESTAMP, INDEX = BROKER_ENTRY_METADATA_INTERCEPTORS


def message(count: int = 1) -> bytes:
    """An entry as a client sends it: a batch of so many messages."""
    described = metadata()
    if count > 1:
        described.num_messages_in_batch = count
    return section(described.SerializeToString(), b"payload")


def world(*interceptors: str, **changes: Any) -> World:
    return World(small(broker_entry_metadata_interceptors=interceptors or BROKER_ENTRY_METADATA_INTERCEPTORS, **changes))


async def append(ledger: ManagedLedger, *counts: int) -> list[Position]:
    stored = await ledger.append(batch(*map(message, counts)))
    return [Position(stored.ledger_id, entry_id) for entry_id in range(stored.first_entry_id, stored.last_entry_id + 1)]


async def stamps(ledger: ManagedLedger) -> list[tuple[Position, int, int]]:
    """Stamps of every entry in the log: position, time and index; -1 for what is missing."""
    found = []
    position = EARLIEST
    while (entries := await ledger.read(position, 100, MANY)) is not None:
        for entry_id, payload in enumerate(payloads(entries), entries.first_entry_id):
            stamp = broker_entry_metadata(split_section(payload))
            assert stamp is not None
            time = stamp.broker_timestamp if stamp.HasField("broker_timestamp") else -1
            index = stamp.index if stamp.HasField("index") else -1
            found.append((Position(entries.ledger_id, entry_id), time, index))
        position = Position(entries.ledger_id, entries.last_entry_id + 1)
    return found


def test_each_entry_is_stored_with_the_brokers_time_and_the_index_of_its_last_message() -> None:
    async def scenario() -> None:
        w = world()
        ledger = await w.open()
        first, second = await append(ledger, 1, 10)
        w.clock.ms += 5
        (third,) = await append(ledger, 3)
        assert await stamps(ledger) == [(first, 1_000_000, 0), (second, 1_000_000, 10), (third, 1_000_005, 13)]
        entries = await ledger.read(EARLIEST, 10, MANY)
        assert entries is not None
        for payload, count in zip(payloads(entries), (1, 10, 3), strict=True):
            verify(split_section(payload))
            assert payload.endswith(message(count))

    run(scenario())


@pytest.mark.parametrize(("interceptor", "found"), [(TIMESTAMP, (1_000_000, -1)), (INDEX, (-1, 0))])
def test_each_of_the_two_can_be_had_alone(interceptor: str, found: tuple[int, int]) -> None:
    async def scenario() -> None:
        w = world(interceptor)
        ledger = await w.open()
        (position,) = await append(ledger, 1)
        assert await stamps(ledger) == [(position, *found)]
        await ledger.set_properties({"a": "b"})
        assert dict(ledger.properties) == ({"a": "b"} if interceptor == TIMESTAMP else {"a": "b", INDEX_PROPERTY: "0"})

    run(scenario())


def test_without_an_interceptor_the_very_buffer_goes_through() -> None:
    async def scenario() -> None:
        ledger = await World(small()).open()
        sent = batch(message(), message(2))
        stored = await ledger.append(sent)
        assert stored.buffer is sent.buffer
        assert payloads(stored) == [message(), message(2)]

    run(scenario())


def test_the_index_goes_on_when_every_ledger_was_trimmed() -> None:
    async def scenario() -> None:
        w = World(trimming(broker_entry_metadata_interceptors=(INDEX,)))
        ledger = await w.open()
        cursor = await ledger.open_cursor("s", EARLIEST)
        await append(ledger, *[3] * 10)
        await append(ledger, 1)
        await ledger.close()
        ledger = await w.open()
        cursor = await ledger.open_cursor("s", EARLIEST)
        cursor.acknowledge_cumulative(ledger.last_confirmed)
        await ledger.trim()
        assert ledger.entry_count == 0
        ledger = await w.reopen()
        assert ledger.properties[INDEX_PROPERTY] == "30"
        (position,) = await append(ledger, 2)
        assert await stamps(ledger) == [(position, -1, 32)]

    run(scenario())


def test_switched_on_later_it_begins_at_zero_and_switched_off_its_place_is_kept() -> None:
    async def scenario() -> None:
        w = World(small())
        await append(await w.open(), 5)
        for interceptors, index in ((INDEX,), "0"), ((), "0"), ((INDEX,), "1"):
            w.settings = small(broker_entry_metadata_interceptors=interceptors)
            ledger = await w.reopen()
            if interceptors:
                await append(ledger, 1)
            await ledger.set_properties(ledger.properties)
            assert ledger.properties[INDEX_PROPERTY] == index

    run(scenario())


def test_a_property_that_is_no_number_is_an_error_of_this_topic_only() -> None:
    async def scenario() -> None:
        w = World(small())
        await (await w.open()).set_properties({INDEX_PROPERTY: "many"})
        w.settings = small(broker_entry_metadata_interceptors=(INDEX,))
        with pytest.raises(ManagedLedgerError, match=f"{NAME}: its property index is no number: 'many'"):
            await w.reopen()
        await append(await w.open("public/default/persistent/other"), 1)

    run(scenario())


def test_the_index_continues_from_the_entry_before_lost_last_entries() -> None:
    async def scenario() -> None:
        w = world(INDEX, auto_skip_non_recoverable_data=True)
        await append(await w.open(), 1, 1, 1)
        w.shared.ledgers[1].lost = {1, 2}
        ledger = await w.reopen()
        await append(ledger, 1)
        assert [index for _, _, index in await stamps(ledger)] == [0, 1]

    run(scenario())


def test_an_interceptor_that_apache_does_not_have_either_is_refused() -> None:
    with pytest.raises(ValueError, match=r"brokerEntryMetadataInterceptors: com\.example\.Mine is none of org"):
        ManagedLedgerSettings(broker_entry_metadata_interceptors=(TIMESTAMP, "com.example.Mine"))


STEPS: st.SearchStrategy[tuple[str, list[int]]] = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(1, 5), min_size=1, max_size=4)),
    st.sampled_from(["fail", "kill", "close", "trim", "properties"]).map(lambda name: (name, [])),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_no_index_is_ever_missing_or_given_twice(steps: list[tuple[str, list[int]]]) -> None:
    """Ledgers fail, are trimmed, closed or killed with appends on their way."""

    async def scenario() -> None:
        w = World(trimming(broker_entry_metadata_interceptors=(INDEX,), managed_ledger_max_entries_per_ledger=3), step_s=0.001)
        ledger = await w.open()
        await ledger.open_cursor("s", EARLIEST)  # nothing is trimmed before it is seen
        seen: dict[Position, int] = {}
        under_way: list[asyncio.Future[Any]] = []
        for name, counts in steps:
            match name:
                case "append":
                    under_way.append(ledger.append(batch(*map(message, counts))))
                case "fail":
                    w.ledger_store.fail_appends = 1
                case "kill" | "close":
                    w.ledger_store.fail_appends = 0
                    if name == "close":
                        await asyncio.gather(ledger.close(), return_exceptions=True)
                    ledger = await w.reopen()
                    await _drop(under_way)
                case "trim":
                    await _settled(under_way)
                    w.ledger_store.fail_appends = 0
                    cursor = await ledger.open_cursor("s", EARLIEST)
                    seen.update(await _indexes(ledger))
                    cursor.acknowledge_cumulative(ledger.last_confirmed)
                    await cursor.flush()
                    await ledger.trim()
                case _:
                    await ledger.set_properties({"a": "b"})
            if under_way and any(future.done() and future.exception() for future in under_way):
                ledger = await w.reopen()
                await _drop(under_way)
        await _settled(under_way)
        seen.update(await _indexes(ledger))
        indexes = [seen[position] for position in sorted(seen)]
        sizes = [after - before for before, after in zip([-1, *indexes], indexes, strict=False)]
        assert all(1 <= size <= 5 for size in sizes), indexes
        assert await _sizes(ledger) == sizes[len(sizes) - ledger.entry_count :]
        await w.kill()

    run(scenario())


async def _indexes(ledger: StoredManagedLedger) -> dict[Position, int]:
    return {position: index for position, _, index in await stamps(ledger)}


async def _sizes(ledger: StoredManagedLedger) -> list[int]:
    """Number of messages that each entry names."""
    found, position = [], EARLIEST
    while (entries := await ledger.read(position, 100, MANY)) is not None:
        for payload in payloads(entries):
            assert payload.startswith(MAGIC_BROKER_ENTRY_METADATA)
            described = metadata()
            described.ParseFromString(bytes(split_section(payload).metadata))
            found.append(described.num_messages_in_batch)
        position = Position(entries.ledger_id, entries.last_entry_id + 1)
    return found


async def _settled(under_way: list["asyncio.Future[Any]"]) -> None:
    await asyncio.gather(*under_way, return_exceptions=True)
    under_way.clear()


async def _drop(under_way: list["asyncio.Future[Any]"]) -> None:
    """Drops appends whose process is gone: nobody takes their results."""
    for future in under_way:
        if not future.cancel():
            future.exception()
    under_way.clear()


def test_a_listener_hears_nothing_after_the_end() -> None:
    async def scenario() -> None:
        heard: list[bool] = []
        listeners = ConfirmedListeners()
        listeners.add(lambda: heard.append(True))
        for is_ended in (False, True):
            if is_ended:
                listeners.clear()
            listeners.moved()
            await asyncio.sleep(0.01)
            assert heard == [True]

    run(scenario())
