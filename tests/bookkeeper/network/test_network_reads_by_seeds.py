"""Adds and many overlapping reads of a bookie across a simulated network, whose delays and pieces a seed deals.

Version 2 names no request, so that answers must find their readers by ledger and entry alone, however they come: a read is
given what it asked for, and soon; it is refused what is there only when its connection has ended.
"""

import asyncio
import random

import pytest

from bookie.server.listener import BookieListener
from bookie.server.settings import BookieServerSettings
from bookkeeper.network.link import AWAY
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.network.pending_requests import PendingRead
from bookkeeper.read.reader import ABSENT_CODES
from ports.network.read_buffer import SharedRoom
from simulation.world.rng import stream
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

SEEDS = 40
LEDGERS, ENTRIES, READERS, READS = 3, 300, 8, 12
UNKNOWN = 99
TIMEOUT_SECONDS = 30.0
SOON_SECONDS = 10.0


class Talk:
    """Stored entries, and the answers that readers got."""

    def __init__(self, client: NetworkBookie, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._loop = asyncio.get_running_loop()
        self._sent: dict[tuple[int, int], bytes] = {}
        self._stored = dict.fromkeys(range(LEDGERS), 0)
        """Number of entries of each ledger whose writes were answered, and so are there."""
        self._endings = 0
        self.answered = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for ledger_id in range(LEDGERS):
                tasks.create_task(self._write(ledger_id))
            for _ in range(READERS):
                tasks.create_task(self._read_on())
            tasks.create_task(self._end_connections())

    async def _write(self, ledger_id: int) -> None:
        at, size = 0, self._rng.choice((10, 300, 3000))
        while at < ENTRIES:
            run = sealed(ledger_id, at, count=self._rng.randint(1, 40), size=size)
            self._sent |= {(ledger_id, entry_id): entry for entry_id, entry in entries_of(run).items()}
            while not await self._is_stored(run):  # the same again: it may be there or not
                continue
            at = self._stored[ledger_id] = at + run.count
            await asyncio.sleep(self._rng.choice((0, 0, 0.02)))

    async def _is_stored(self, run: EntryRun) -> bool:
        try:
            await self._client.add(run, KEY)
        except BookieError as error:
            if error.code != AWAY:
                raise
            return False
        return True

    async def _end_connections(self) -> None:
        for _ in range(self._rng.choice((0, 0, 1, 3))):
            await asyncio.sleep(self._rng.uniform(0, 0.5))
            link = self._client._entries._link
            if link is not None:
                self._endings += 1
                link.end("by the test")

    async def _read_on(self) -> None:
        for _ in range(READS):
            ledger_id = self._rng.choice((*range(LEDGERS), UNKNOWN))
            first = self._rng.randrange(max(1, self._stored.get(ledger_id, 0) + 2))
            seconds = self._rng.choice((None, None, None, 0.001, 0.02))
            try:
                async with asyncio.timeout(seconds):
                    await self._read(ledger_id, first)
            except TimeoutError:
                assert seconds is not None

    async def _read(self, ledger_id: int, first: int) -> None:
        there, endings, began = self._stored.get(ledger_id, -1), self._endings, self._loop.time()
        count, size = self._rng.randint(1, 200), self._rng.choice((1, 5_000, 1 << 20))
        try:
            run = await self._client.read(ledger_id, first, count, size)
        except BookieError as error:
            is_ended = self._endings > endings
            self._check_refusal(error.code, f"{ledger_id}:{first}", was_there=first < there, is_ended=is_ended)
        else:
            self._check(run, ledger_id, first, count)
        assert self._loop.time() - began < SOON_SECONDS, f"{ledger_id}:{first} and {count} more"
        self.answered += 1

    def _check_refusal(self, code: BookieCode, what: str, *, was_there: bool, is_ended: bool) -> None:
        if code == AWAY:
            assert is_ended, f"{what}: refused while its connection lived"
        else:
            assert code in ABSENT_CODES, what
            assert not was_there, f"{what} was there"

    def _check(self, run: EntryRun, ledger_id: int, first: int, count: int) -> None:
        assert (run.ledger_id, run.first_entry_id) == (ledger_id, first)
        assert 1 <= run.count <= count
        assert all(self._sent[ledger_id, entry_id] == entry for entry_id, entry in entries_of(run).items())


def talk(seed: int, version: int) -> int:
    """Number of reads that were answered."""

    async def scenario(machine: Machine) -> int:
        listener = BookieListener(await machine.start(), BookieServerSettings())
        await listener.listen(None, 0)
        client = NetworkBookie("b", "localhost", listener.port, SharedRoom(), TIMEOUT_SECONDS, use_version2=version == 2)
        try:
            both = Talk(client, stream(seed, "talk"))
            await both.run()
            return both.answered
        finally:
            await client.close()
            await listener.close()

    found: int = on_machine(scenario, seed)
    return found


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_read_gets_what_it_asked_for_and_soon(first: int, version: int) -> None:
    answered = [talk(seed, version) for seed in range(first, first + 10)]
    assert sum(answered) > len(answered) * READERS * READS / 2


def _forgetful(self: PendingRead[object], run: EntryRun) -> list[EntryRun]:
    """Only the last part of a run is left for others, as it was once."""
    stop = run.first_entry_id
    for start, stop in self.awaited.take(run.first_entry_id, run.last_entry_id + 1):
        self.runs[start] = run.entries(start, stop - start)
    return [run.entries(stop, run.last_entry_id + 1 - stop)] if stop <= run.last_entry_id else []


def test_answers_that_are_thrown_away_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingRead, "read", _forgetful)
    with pytest.raises(ExceptionGroup):
        sum(talk(seed, 2) for seed in range(SEEDS))
