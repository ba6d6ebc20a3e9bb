"""LocalReads: hands the files of a bookie to readers on its machine, and says where in them entries are.

Peers that may read over the bookie's port get a socket and a token there (GET_BOOKIE_INFO), so other peers cannot read here.
For a bookie without a port, inside a standalone, the admin REST gives them to super-users. LocalReads reads no entry and knows
flushed entries alone: for any other entry readers come to the port, or to the broker.
Why, and what it is safe against: docs/adr/0030-reads-on-one-machine.md.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bookie.reads.placed_entries import PlacedEntries
from bookie.settings import BookieSettings
from bookie.striped_bookie import AnyBookie
from ports.logs import line
from ports.network.local_port import LocalAnswer, LocalPeer, LocalPort, close_all, open_to_share
from wire.bookie.codes import BookieError
from wire.bookie.local_reads import (
    ANSWER_BYTES_MAX,
    ANSWER_HEAD_BYTES,
    REQUEST_BYTES_MAX,
    TOKEN_BYTES,
    Segment,
    decode_request,
    encode_answer,
    entries_within,
)

log = logging.getLogger("interpulse")


class Counts(Protocol):
    """Counters of local reads, added to here."""

    local_entries: int
    read_bytes: int


@dataclass(slots=True)
class LocalCounts:
    """Counters of a bookie that has no port, and so no `RequestStats`."""

    local_entries: int = 0
    read_bytes: int = 0


def begun_local_reads(bookie: AnyBookie, settings: BookieSettings, stats: Counts) -> "LocalReads | None":
    """Listening. None: they are not wanted, or there are no such sockets here, which is logged."""
    if not settings.allow_local_reads:
        return None
    reads = LocalReads(bookie, stats)
    try:
        reads.listen()
    except OSError as error:
        log.warning(line("local reads are off: readers on this machine get no files with entries", error=error))
        return None
    return reads


class LocalReads:
    """Local reads of one bookie. `told`: the name of the socket, and the token with which a request begins."""

    def __init__(self, bookie: AnyBookie, stats: Counts) -> None:
        self._bookie, self._stats = bookie, stats
        self._token = secrets.token_bytes(TOKEN_BYTES)
        name = f"interpulse-bookie-{secrets.token_hex(8)}"
        self.told = (name.encode(), self._token)
        self._port = LocalPort(name, REQUEST_BYTES_MAX, self._answer)

    def listen(self) -> None:
        """OSError where there are no such sockets."""
        self._port.listen()

    async def close(self) -> None:
        await self._port.close()

    async def _answer(self, message: bytes, peer: LocalPeer) -> LocalAnswer | None:
        request = decode_request(message, self._token)
        if request is None:
            return None
        ledger_id, ranges = request
        found = _Found(peer)
        try:
            await self._find(ledger_id, ranges, found)
        except BookieError:
            pass  # it has no such ledger, or not all of it: its port says what is the matter
        except BaseException:
            close_all(found.descriptors)
            raise
        self._stats.local_entries += found.entries
        self._stats.read_bytes += found.entries_bytes
        return LocalAnswer(encode_answer(found.segments), found.descriptors)

    async def _find(self, ledger_id: int, ranges: Sequence[tuple[int, int]], found: "_Found") -> None:
        for placed in await self._bookie.placed(ledger_id, ranges):
            if not found.take(placed):
                return


class _Found:
    """Found entries that fit one answer."""

    def __init__(self, peer: LocalPeer) -> None:
        self._peer = peer
        self._size = ANSWER_HEAD_BYTES
        self.segments: list[Segment] = []
        self.descriptors: list[int] = []
        self.entries = self.entries_bytes = 0

    def take(self, placed: PlacedEntries) -> bool:
        """False: there is no room for more."""
        first = placed.first_entry_id - placed.table.first_entry_id
        wanted = placed.end_entry_id - placed.first_entry_id
        count = min(wanted, entries_within(ANSWER_BYTES_MAX - self._size))
        if count <= 0:
            return False
        file = self._file(placed.path)
        if file is None:
            return True
        segment = Segment(file, placed.place, placed.first_entry_id, placed.table.offsets[first : first + count + 1])
        self._size += segment.size_bytes
        self.segments.append(segment)
        self.entries += count
        self.entries_bytes += segment.offsets[-1] - segment.offsets[0]
        return count == wanted

    def _file(self, path: str) -> int | None:
        """None: it is gone, as a compaction has put it in another's place, or the peer has too many."""
        files = self._peer.files
        if path not in files:
            if not self._peer.has_room:
                return None
            try:
                self.descriptors.append(open_to_share(path))
            except OSError:
                return None
            files[path] = len(files)
        return files[path]
