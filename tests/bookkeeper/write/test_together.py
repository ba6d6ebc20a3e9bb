"""Parts of many ledgers on bookies of the same process: one mix a bookie, one pass back; and what goes by itself."""

import asyncio
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerReader, LedgerWriter
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write import together
from bookkeeper.write.counted_adds import CountedAdds
from bookkeeper.write.parts import Part, Route
from bookkeeper.write.replicated_adds import ReplicatedAdds
from metadata.memory import MemoryStore, SharedTree
from simulation.world.clock import SimClock
from tests.bookie.machines import Machine, on_machine
from tests.bookkeeper.fake_bookies import payloads_of
from tests.invariants import checked_after_each_step
from wire.run import EntryBatch, EntryMix, EntryRun, batch_of

checked_machines = checked_after_each_step(ReplicatedAdds)


class Owner:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, BaseException | None]] = []
        self.waits_for = 0
        self.all_told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def part_answered(self, part: Part, error: BaseException | None) -> None:
        self.told.append((part.ledger_id, part.first_entry_id, error))
        if len(self.told) == self.waits_for:
            self.all_told.set_result(None)


def client_of(machine: Machine, shared: SharedTree, digest: str = "CRC32C") -> BookKeeper:
    settings = BookKeeperSettings(1, 1, 1, digest)
    store = MemoryStore(SimClock(machine.loop), shared, alone=False)
    return BookKeeper({"b1:3181": machine.bookie}, store, settings, Random(1))


def taken(writers: Sequence[LedgerWriter], mix: EntryBatch, owner: Owner) -> list[Part]:
    """A part of an entry for each writer, of those that take one now."""
    parts = [Part(mix, index, 1, owner, index, 0.0) for index in range(len(writers))]
    found = [part for part, writer in zip(parts, writers, strict=True) if writer.take_part(part)]
    owner.waits_for += len(found)
    return found


def payloads(count: int, number: int) -> list[bytes]:
    return [b"%d of mix %d" % (index, number) for index in range(count)]


async def ledgers_with_an_entry(client: BookKeeper, count: int) -> list[LedgerWriter]:
    writers = [await client.create({}) for _ in range(count)]
    await asyncio.gather(*[writer.append(batch_of([b"first"])) for writer in writers])
    return writers


async def all_payloads(ledger: LedgerReader | LedgerWriter, last_entry_id: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) <= last_entry_id:
        found += payloads_of(await ledger.read(len(found), 100, 1 << 20))
    return found


def watch_mixes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of entries of each mix that the bookie gets."""
    counts: list[int] = []
    add_mix = type(machine.bookie).add_mix

    def watched(self: object, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        counts.append(mix.count)
        return add_mix(machine.bookie, mix, master_key)

    monkeypatch.setattr(type(machine.bookie), "add_mix", watched)
    return counts


def test_parts_of_many_ledgers_are_one_mix_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, shared := SharedTree())
        await client.initialise()
        writers = await ledgers_with_an_entry(client, 5)
        mixes = watch_mixes(machine, monkeypatch)
        owner = Owner()
        sent = [writers[index] for index in (0, 1, 0, 4, 2, 3)]
        for number in range(3):
            mix = batch_of(payloads(len(sent), number))
            parts = taken(sent, mix, owner)
            assert len(parts) == len(sent)
            together.send(parts)
            assert not owner.told, "never in the stack of `send`"
        await owner.all_told
        assert mixes == [6, 6, 6]
        ids = {writer.ledger_id: 1 for writer in writers}
        for ledger_id, entry_id, error in owner.told:
            assert (entry_id, error) == (ids[ledger_id], None)
            ids[ledger_id] += 1
        runs = [part.run() for part in parts]
        assert [payloads_of(run) for run in runs] == [[payload] for payload in payloads(6, 2)]
        assert len(runs[0].buffer) < 100, "a small part does not keep the whole buffer alive"
        for writer in writers:
            await writer.close()
            reader = await client_of(machine, shared).open(writer.ledger_id)
            assert (reader.last_entry_id, reader.length_bytes) == (ids[writer.ledger_id] - 1, writer.length_bytes)
            read = await all_payloads(reader, reader.last_entry_id)
            expected = [payloads(6, number)[index] for number in range(3) for index, each in enumerate(sent) if each is writer]
            assert read == [b"first", *expected]

    on_machine(scenario)


def test_the_first_entries_of_a_ledger_go_by_themselves_and_nothing_overtakes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, SharedTree())
        await client.initialise()
        old, new = await ledgers_with_an_entry(client, 1), [await client.create({}) for _ in range(2)]
        mixes = watch_mixes(machine, monkeypatch)
        owner = Owner()
        together.send(taken([new[0], old[0], new[0], new[1], old[0]], batch_of(payloads(5, 0)), owner))
        await owner.all_told
        assert mixes == [2]
        assert [told[1:] for told in owner.told if told[0] == new[0].ledger_id] == [(0, None), (1, None)]
        assert await all_payloads(new[0], 1) == [payloads(5, 0)[0], payloads(5, 0)[2]]
        assert await all_payloads(old[0], 2) == [b"first", payloads(5, 0)[1], payloads(5, 0)[4]]

    on_machine(scenario)


def test_a_fenced_ledger_of_a_mix_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, shared := SharedTree())
        await client.initialise()
        writers = await ledgers_with_an_entry(client, 3)
        owner = Owner()
        together.send(taken(writers, batch_of(payloads(3, 0)), owner))
        reader = await client_of(machine, shared).open(writers[1].ledger_id)
        assert reader.last_entry_id == 1, "recovery has seen what was confirmed"
        await owner.all_told
        later = Owner()
        together.send(taken(writers, batch_of(payloads(3, 1)), later))
        await later.all_told
        errors = {ledger_id: error for ledger_id, _, error in later.told}
        assert isinstance(errors[writers[1].ledger_id], LedgerFenced)
        assert [errors[writer.ledger_id] for writer in (writers[0], writers[2])] == [None, None]
        assert len(taken(writers, batch_of(payloads(3, 2)), Owner())) == 2, "it takes no more"
        with pytest.raises(LedgerFenced):
            await writers[1].close()

    on_machine(scenario)


def test_a_mix_that_waited_while_one_of_its_ledgers_was_fenced_is_added_one_by_one() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, SharedTree())
        await client.initialise()
        writers = await ledgers_with_an_entry(client, 3)
        large = [writers[2].append(batch_of([bytes(50_000)])) for _ in range(30)]
        assert machine.bookie._admission.waiting
        owner = Owner()
        together.send(taken(writers[:2], batch_of(payloads(2, 0)), owner))
        await machine.bookie.fence(writers[1].ledger_id, client._master_key)
        await owner.all_told
        errors = {ledger_id: error for ledger_id, _, error in owner.told}
        assert errors[writers[0].ledger_id] is None
        assert isinstance(errors[writers[1].ledger_id], LedgerFenced)
        assert payloads_of(await writers[0].read(1, 1, 1 << 20)) == [payloads(2, 0)[0]]
        await asyncio.gather(*large)

    on_machine(scenario)


class Taker:
    """Keeps the mixes and runs that it gets; stores them when it is told to."""

    writable_ledgers = None

    def __init__(self) -> None:
        self.got: list[tuple[bytes, asyncio.Future[None]]] = []

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        return self._take(bytes(memoryview(run.buffer)[run.offsets[0] : run.offsets[-1]]))

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        return self._take(bytes(mix.buffer))

    def _take(self, entries: bytes) -> "asyncio.Future[None]":
        self.got.append((entries, asyncio.get_running_loop().create_future()))
        return self.got[-1][1]


def test_each_bookie_gets_one_mix_of_what_is_its_own_and_each_answer_counts_in_its_seat() -> None:
    async def scenario() -> None:
        takers = [Taker() for _ in range(3)]
        stored: list[tuple[int, int]] = []
        mix, owner = batch_of(payloads(5, 0)), Owner()
        ensembles = [(0, 1), (1, 0), (0, 1), (2, 1), (1, 2)]
        parts = [Part(mix, index, 1, owner, index, 0.0) for index in range(5)]
        for index, part in enumerate(parts):
            part.ledger_id, part.first_entry_id, part.last_entry_id = 10 + index, 3, 3
            part.last_add_confirmed, part.length_before = 2, 0
            route = Route(b"key", (0, 7), tuple(takers[number] for number in ensembles[index]))
            adds = SimpleNamespace(route=route, part_stored=lambda part, seat: stored.append((part.source, seat)))
            part.adds = cast(CountedAdds, adds)
        together.send(parts)
        sealed = [bytes(memoryview(part.run().buffer)) for part in parts]
        assert [len(taker.got) for taker in takers] == [1, 1, 1]
        of_them = [[index for index, ensemble in enumerate(ensembles) if number in ensemble] for number in range(3)]
        for taker, (entries, answer), theirs in zip(takers, [taker.got[0] for taker in takers], of_them, strict=True):
            assert sorted(entries[at : at + len(sealed[0])] for at in range(0, len(entries), len(sealed[0]))) == sorted(
                sealed[index] for index in theirs
            )
            answer.set_result(None)
            await asyncio.sleep(0)
            number = takers.index(taker)
            assert sorted(stored) == sorted((index, (0, 7)[ensembles[index].index(number)]) for index in theirs)
            stored.clear()

    asyncio.run(scenario())


def test_closing_waits_for_parts_and_takes_no_more() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, SharedTree())
        await client.initialise()
        (writer,) = await ledgers_with_an_entry(client, 1)
        owner = Owner()
        together.send(taken([writer], batch_of(payloads(1, 0)), owner))
        closing = asyncio.ensure_future(writer.close())
        await asyncio.sleep(0)
        assert taken([writer], batch_of(payloads(1, 1)), owner) == []
        await closing
        assert owner.told == [(writer.ledger_id, 1, None)]
        assert (await client.open(writer.ledger_id)).last_entry_id == 1

    on_machine(scenario)


def test_a_bookie_that_stops_fails_every_part_with_the_reason() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, SharedTree())
        await client.initialise()
        writers = await ledgers_with_an_entry(client, 3)
        machine.bookie.health.turn_read_only("storage", "it is broken")
        owner = Owner()
        together.send(taken(writers, batch_of(payloads(3, 0)), owner))
        await owner.all_told
        assert [ledger_id for ledger_id, _, _ in owner.told] == [writer.ledger_id for writer in writers]
        for ledger_id, _, error in owner.told:
            assert isinstance(error, LedgerError)
            assert f"EREADONLY ledger {ledger_id}" in str(error)

    on_machine(scenario)


def test_other_digests_and_other_headers_are_no_parts() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.start()
        client = client_of(machine, SharedTree(), "MAC")
        await client.initialise()
        writer = await client.create({})
        assert taken([writer], batch_of(payloads(1, 0)), Owner()) == []
        other = client_of(machine, SharedTree())
        await other.initialise()
        assert taken([await other.create({})], batch_of(payloads(1, 0), 32), Owner()) == []

    on_machine(scenario)
