"""Reads of entries that lie apart, which come together: each is answered once, and they share reads of the disk."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from bookie.server.operations import READ_BYTES_MAX
from bookie.storage.block_v1 import BLOCK_HEADER_BYTES, LOG_ALIGNMENT
from tests.bookie.machines import SMALL
from tests.bookie.runs import KEY, entries_of, sealed
from tests.bookie.server.client import EIO, ENOENTRY, ENOLEDGER, EOK, Client, Served, served
from tests.wire.bookie.bookie_samples import read
from wire.run import EntryRun

STRIPES = 200


def stripes(count: int, size: int = 100) -> list[EntryRun]:
    """Entries that a bookie has of a ledger striped over three with a write quorum of two: two of every three."""
    return [sealed(7, 3 * index, 2, size) for index in range(count)]


async def answered(client: Client, wanted: list[tuple[int, int]]) -> Counter[tuple[int, int, int, bytes]]:
    """Ledger, entry, code and entry of each answer to reads that are sent at once."""
    client.send(b"".join(read(*each) for each in wanted))
    answers = [await client.answer() for _ in wanted]
    return Counter((each.ledger_id, each.entry_id, each.code, each.body) for each in answers)


def test_stripes_of_a_ledger_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(at: Served) -> None:
        runs = stripes(STRIPES)
        for run in runs:
            await at.bookie.add(run, KEY)
        await at.bookie.flush()
        there = {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}
        picked: list[int] = []
        pick = at.bookie.pick

        async def counted(wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
            picked.extend(len(entry_ids) for _, entry_ids in wanted)
            return await pick(wanted, bytes_max)

        monkeypatch.setattr(at.bookie, "pick", counted)
        async with at.client() as client:
            found = await answered(client, [(7, entry_id) for entry_id in there])
        assert found == Counter({(7, entry_id, EOK, data): 1 for entry_id, data in there.items()})
        assert sum(picked) == len(there)
        assert len(picked) < len(there) / 10

    served(scenario)


@pytest.mark.parametrize("seed", range(20))
def test_each_read_is_answered_once_whatever_there_is_of_it(seed: int) -> None:
    """Some flushed and some not, written again, missing, asked for twice, too large to be read with others; other ledgers."""
    rng = random.Random(seed)

    async def scenario(at: Served) -> None:
        there: dict[tuple[int, int], bytes] = {}
        for number in range(rng.randint(1, 60)):
            size = rng.choice((10, 100, 5000, READ_BYTES_MAX // 3, READ_BYTES_MAX + 1))
            run = sealed(rng.choice((7, 7, 9)), rng.randint(0, 150), rng.randint(1, 3), size, number)
            await at.bookie.add(run, KEY)
            there |= {(run.ledger_id, entry_id): data for entry_id, data in entries_of(run).items()}
            if rng.random() < 0.1:
                await at.bookie.flush()
        wanted = [(rng.choice((7, 7, 7, 9, 11)), rng.randint(0, 160)) for _ in range(rng.randint(1, 150))]
        unknown = {7, 9, 11} - {ledger_id for ledger_id, _ in there}
        expected = Counter(
            (*place, EOK, there[place]) if place in there else (*place, ENOLEDGER if place[0] in unknown else ENOENTRY, b"")
            for place in wanted
        )
        async with at.client() as client:
            assert await answered(client, wanted) == expected

    served(scenario)


def test_a_damaged_entry_is_reported_and_keeps_no_other_back() -> None:
    async def scenario(at: Served) -> None:
        runs = stripes(20)
        for run in runs:
            await at.bookie.add(run, KEY)
        await at.bookie.flush()
        id_of_first = LOG_ALIGNMENT + BLOCK_HEADER_BYTES + 3 * 4 + 15
        at.machine.disk.contents(f"{SMALL.ledger_directory}/00000001.log").flip_bit(id_of_first, 1)
        async with at.client() as client:
            found = await answered(client, [(7, entry_id) for run in runs for entry_id in entries_of(run)])
        codes = {entry_id: code for _, entry_id, code, _ in found}
        assert codes == {entry_id: EOK if entry_id else EIO for run in runs for entry_id in entries_of(run)}

    served(scenario)
