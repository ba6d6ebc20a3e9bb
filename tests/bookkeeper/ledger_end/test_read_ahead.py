"""Duration of the recovery of a long tail, with bookies that answer after a while, or never."""

import asyncio
import struct

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_end import read_ahead, recovery_driver
from bookkeeper.ledgers import LedgerError
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, batch, payloads_of, settle
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode
from wire.run import EntryRun

ANSWER_SECONDS = 0.01
COUNT = 1000


class FarBookie(FakeBookie):
    """Answers after a while."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        near = super().add(run, master_key, recovery=recovery)
        far: asyncio.Future[None] = loop.create_future()
        near.add_done_callback(lambda done: loop.call_later(ANSWER_SECONDS, _copy, done, far))
        return far

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        await asyncio.sleep(ANSWER_SECONDS)
        return await super().read(ledger_id, first_entry_id, count_max, bytes_max)


def _copy(done: "asyncio.Future[None]", to: "asyncio.Future[None]") -> None:
    error = done.exception()
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(None)


async def long_tail(sizes: tuple[int, int, int]) -> tuple[Cluster, BookKeeper, int]:
    """A ledger whose writer had all of it under way; a client, and its id."""
    cluster = Cluster(*sizes)
    cluster.bookies = {name: FarBookie() for name in cluster.bookies}
    client = cluster.client()
    await client.initialise()
    writer = await client.create({})
    appended = [writer.append(batch(b"%d" % number)) for number in range(COUNT)]
    await asyncio.gather(*appended)
    for bookie in cluster.all:
        for ledger in bookie.ledgers.values():
            lacs = [struct.unpack_from(">q", entry, 16)[0] for entry in ledger.entries.values()]
            assert max(lacs) == -1, "none of them says that another is confirmed"
    return cluster, client, writer.ledger_id


async def recovered(client: BookKeeper, ledger_id: int) -> float:
    """Seconds that it took; all of it is there."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    reader = await client.open(ledger_id)
    seconds = loop.time() - began
    assert reader.last_entry_id == COUNT - 1
    found: list[bytes] = []
    while len(found) < COUNT:
        found += payloads_of(await reader.read(len(found), COUNT, 1 << 20))
    assert found == [b"%d" % number for number in range(COUNT)]
    return seconds


@pytest.mark.parametrize("sizes", [(3, 2, 2), (5, 2, 2), (4, 3, 2), (3, 3, 2)])
def test_a_long_tail_is_recovered_by_windows_however_it_is_striped(sizes: tuple[int, int, int]) -> None:
    async def scenario() -> None:
        _, client, ledger_id = await long_tail(sizes)
        assert await recovered(client, ledger_id) < 20 * ANSWER_SECONDS, "not a way there and back for each entry"

    on_loop(lambda _: scenario())


def test_incident_1067_a_bookie_that_hangs_holds_a_recovery_up_for_one_window_at_most() -> None:
    async def scenario() -> None:
        cluster, client, ledger_id = await long_tail((3, 2, 2))
        cluster.all[0].hangs |= {"read", "fence"}
        loop = asyncio.get_running_loop()
        began = loop.time()
        await client.open(ledger_id)
        assert loop.time() - began < read_ahead.SECONDS_MAX + 50 * ANSWER_SECONDS
        cluster.all[0].hangs.clear()
        await recovered(client, ledger_id)

    on_loop(lambda _: scenario())


def test_incident_2614_what_was_not_found_ahead_is_asked_again_of_a_bookie_that_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry that arrives after it was looked for in vain, and before the fence, is in the ledger."""

    async def scenario() -> None:
        cluster, client, ledger_id = await long_tail((3, 2, 2))
        late = dict.fromkeys((COUNT - 2, COUNT - 1))
        taken = [
            (bookie, entry_id, bookie.ledgers[ledger_id].entries.pop(entry_id))
            for bookie in cluster.all
            for entry_id in late
            if entry_id in bookie.ledgers[ledger_id].entries
        ]
        real = read_ahead.ReadAhead._keep

        def keep(self: read_ahead.ReadAhead, runs: "list[EntryRun | BaseException]") -> None:
            real(self, runs)
            if any(isinstance(run, BaseException) for run in runs):
                for bookie, entry_id, entry in taken:
                    bookie.ledgers[ledger_id].entries[entry_id] = entry

        monkeypatch.setattr(read_ahead.ReadAhead, "_keep", keep)
        await recovered(client, ledger_id)

    on_loop(lambda _: scenario())


@pytest.mark.parametrize("code", [BookieCode.EIO, BookieCode.ETOOMANYREQUESTS])
def test_reading_ahead_never_makes_an_end_of_what_cannot_be_read(code: BookieCode) -> None:
    async def scenario() -> None:
        cluster, client, ledger_id = await long_tail((3, 2, 2))
        cluster.all[0].failures["read"] = cluster.all[1].failures["read"] = code
        with pytest.raises(LedgerError, match="neither readable nor certainly absent"):
            await client.open(ledger_id)
        await settle()
        assert not [task for task in asyncio.all_tasks() if "read ahead" in task.get_name()]
        for bookie in cluster.all:
            bookie.failures.clear()
        await recovered(client, ledger_id)

    on_loop(lambda _: scenario())


def test_entries_too_large_for_a_window_are_recovered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "BYTES_MAX", 40)
    monkeypatch.setattr(recovery_driver, "RUN_BYTES_MAX", 40)

    async def scenario() -> None:
        _, client, ledger_id = await long_tail((3, 2, 2))
        await recovered(client, ledger_id)

    on_loop(lambda _: scenario())


class CountingBookie(FarBookie):
    """Bookie that counts entries asked for in vain: of each a bookie on a network says that it does not have it."""

    in_vain = 0

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        held = self.ledgers[ledger_id].entries
        self.in_vain += sum(entry_id not in held for entry_id in range(first_entry_id, first_entry_id + count_max))
        return await super().read(ledger_id, first_entry_id, count_max, bytes_max)


@pytest.mark.parametrize("damage", [False, True])
def test_a_bookie_is_not_asked_for_a_thousand_entries_after_its_last(damage: bool) -> None:
    """Twenty ledgers of a killed broker: 60,000 answers and more, a second of two processors, before any was recovered."""

    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        cluster.bookies = {name: CountingBookie() for name in cluster.bookies}
        client = cluster.client()
        await client.initialise()
        writer = await client.create({})
        for number in range(20):
            await writer.append(batch(b"%d" % number))
        if damage:
            first = cluster.all[0].ledgers[writer.ledger_id].entries
            first[19] = first[19][:-1] + b"?"
        reader = await client.open(writer.ledger_id)
        assert reader.last_entry_id == 19
        most = 10 + (4 * recovery_driver.UNKNOWN_ENTRIES if damage else 0)
        assert sum(bookie.in_vain for bookie in cluster.all if isinstance(bookie, CountingBookie)) <= most

    on_loop(lambda _: scenario())
