"""Whether every ledger of a cluster has all its copies, looked at from outside: its metadata, and what each bookie has."""

import asyncio
from collections.abc import Sequence
from time import monotonic

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.ledgers import NoSuchLedger
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.repair.all_ledgers import all_ledger_ids
from bookkeeper.repair.registered import registered_bookies
from tests.clients.bookies.repaired_cluster import Observer, observing
from wire.bookie.codes import BookieError

POLL_SECONDS = 0.5
SHOWN_MAX = 5


class Copies:
    """Copies of one cluster's ledgers. A closed ledger that was whole once is not checked again: no schedule removes a disk."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._whole: set[int] = set()

    def lacking(self, seconds_max: float) -> list[str]:
        """Faults that are left after so long; empty as soon as there are none."""
        return asyncio.run(self._until_whole(seconds_max))

    async def _until_whole(self, seconds_max: float) -> list[str]:
        deadline = monotonic() + seconds_max
        async with observing(self._servers) as observer:
            while True:
                found = await self._lacking_now(observer)
                if not found or monotonic() > deadline:
                    return found
                await asyncio.sleep(POLL_SECONDS)

    async def _lacking_now(self, observer: Observer) -> list[str]:
        marked = [ledger_id async for ledger_id in observer.marks.ledger_ids()]
        found = [f"ledger {ledger_id} is marked as underreplicated" for ledger_id in marked[:SHOWN_MAX]]
        present = (await registered_bookies(observer.store)).all
        async for ledger_id in all_ledger_ids(observer.store, observer.registry):
            if ledger_id not in self._whole and len(found) < SHOWN_MAX:
                found += await self._lacking_of(observer, ledger_id, present)
        return found

    async def _lacking_of(self, observer: Observer, ledger_id: int, present: frozenset[str]) -> list[str]:
        try:
            metadata = (await observer.registry.read(ledger_id)).metadata
        except NoSuchLedger:  # trimmed meanwhile
            return []
        named = {name for segment in metadata.segments for name in segment.bookies}
        found = [f"ledger {ledger_id}: {name} is named, and not registered" for name in sorted(named - present)]
        if metadata.state is LedgerState.OPEN or found:
            return found
        if metadata.state is not LedgerState.CLOSED:
            return [f"ledger {ledger_id} is {metadata.state.name}"]
        found = [
            line for index in range(len(metadata.segments)) for line in await _lacking_in(observer, ledger_id, metadata, index)
        ]
        if not found:
            self._whole.add(ledger_id)
        return found


async def _lacking_in(observer: Observer, ledger_id: int, metadata: LedgerMetadata, index: int) -> Sequence[str]:
    """Faults of one segment. With Qw = E each entry is at each of its bookies."""
    assert metadata.write_quorum == metadata.ensemble_size
    segment = metadata.segments[index]
    ends = [each.first_entry_id for each in metadata.segments[index + 1 :]] + [metadata.last_entry_id + 1]
    found = []
    for name in segment.bookies:
        try:
            bookie = observer.bookies[name]
            assert isinstance(bookie, NetworkBookie)
            runs = await bookie.list_entries(ledger_id)
        except BookieError as error:
            if ends[0] > segment.first_entry_id:
                found.append(f"ledger {ledger_id} at {name}: {error}")
            continue
        missing = _missing(runs, segment.first_entry_id, ends[0])
        if missing:
            found.append(f"ledger {ledger_id} at {name}: {missing} of {segment.first_entry_id}..{ends[0] - 1} are missing")
    return found


def _missing(runs: Sequence[tuple[int, int]], first: int, end: int) -> int:
    """Number of entries from `first` to before `end` that are in no run (first, last)."""
    there = sum(max(0, min(last + 1, end) - max(begin, first)) for begin, last in runs)
    return max(0, end - first) - there
