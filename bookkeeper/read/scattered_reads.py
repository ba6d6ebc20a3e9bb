"""Entries of many ledgers that lie far apart, read in one go from bookies that can (one in this process).

Only sound entries that come at once count. `EntryReader.read` does the rest (another replica, a timeout, a ledger that has
moved), for each entry that is missing here.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from bookkeeper.ports import BookieClient, PickingBookie
from bookkeeper.read.reader import EntryReader
from ports.logs import line
from wire.run import EntryRun

_log = logging.getLogger(__name__)


async def pick(
    wanted: Sequence[tuple[EntryReader, Sequence[int]]],
    bookies: Mapping[str, BookieClient],
    bytes_max: int,
    timeout_seconds: float,
) -> list[EntryRun]:
    """Runs of one entry each; of those that would be more than `bytes_max` none. `timeout_seconds` 0: none."""
    readers = {reader.ledger_id: reader for reader, _ in wanted}
    asked: dict[str, list[tuple[int, Sequence[int]]]] = {}
    for reader, entry_ids in wanted:
        for name, theirs in reader.asked_first(entry_ids).items():
            asked.setdefault(name, []).append((reader.ledger_id, theirs))
    found: list[EntryRun] = []
    try:
        async with asyncio.timeout(timeout_seconds or None):
            for name, each in asked.items():
                bookie = bookies.get(name)
                if isinstance(bookie, PickingBookie):
                    found += await bookie.pick(each, bytes_max - sum(run.size_bytes for run in found))
    except TimeoutError:
        _log.warning(
            line(
                "reading scattered entries together failed: they are read one by one",
                entries=len(found),
                why=f"not read in {timeout_seconds:g} s",
            )
        )
    return [sound for run in found if (sound := readers[run.ledger_id].sound(run)) is not None]
