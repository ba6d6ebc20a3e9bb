"""NetworkBookie: one bookie across a socket, as `bookkeeper.ports.BookieClient` and `bookkeeper.ports.ExtendedBookie`.

Adds and reads go over a connection of the version that is chosen, 2 unless told otherwise: that one is spoken run by run, also
to Apache's bookies. Requests of version 3 alone go over a connection of its own, made at its first use: a bookie keeps to one
version for each connection (BookieProtoEncoding). Apache's client has no such requests beside version 2. Bounds:
ADD_BYTES_MAX of adds under way, beyond which they are refused with ETOOMANYREQUESTS, and READS_MAX reads: further ones wait.
"""

import asyncio
from collections import OrderedDict
from functools import partial

from bookkeeper.network.connection import NetworkConnection
from bookkeeper.network.link import AWAY, Add, Link
from bookkeeper.network.link_version2 import ENTRIES_PER_READ_MAX, Version2Link
from bookkeeper.network.link_version3 import Version3Link
from bookkeeper.ports import DiskSpace, KnownLac, PolledLac
from ports.loop.promise import Promise, promises
from ports.network.read_buffer import SharedRoom
from ports.network.tls import RenewedTls
from wire.bookie.availability import decode_availability
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.version3_requests import FREE_AND_TOTAL, Response, code_of, long_poll_request
from wire.generated import bookie_protocol_pb2 as api
from wire.run import EntryMix, EntryRun
from wire.run_parts import cut

ADD_BYTES_MAX = 64 * 1024 * 1024
READS_MAX = 64
FIRST_ENTRY_BYTES = 64 * 1024
"""Assumed size of an entry of a ledger before any was read; it decides how many entries the first read asks for."""
LEDGERS_MAX = 1000
"""Ledgers whose mean entry size is remembered; at the bound the one that was read longest ago is forgotten."""
NO_LEDGER = -1


class NetworkBookie:
    """One bookie. `close` ends it; a call after that fails."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        room: SharedRoom,
        timeout_seconds: float = 30.0,
        *,
        use_version2: bool = True,
        tls: RenewedTls | None = None,
    ) -> None:
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._promise = promises(self._loop)
        where = name, host, port, room, timeout_seconds, tls
        self._version3 = NetworkConnection(Version3Link, *where)
        self._entries: NetworkConnection[Version2Link] | NetworkConnection[Version3Link] = self._version3
        if use_version2:
            self._entries = NetworkConnection(Version2Link, *where)
        self._turns = asyncio.Semaphore(READS_MAX)
        self._last_reads: dict[int, asyncio.Future[None]] = {}
        self._entry_bytes: OrderedDict[int, int] = OrderedDict()
        """Size of entries by ledger: small entries of one ledger say nothing about those of another."""
        self._add_bytes = 0

    # BookieClient

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """See `BookieClient.add`."""
        return self._add(self._entries, run, master_key, recovery=recovery)

    # MixingBookie

    def mixing_for(self, ledger_id: int) -> "NetworkBookie | None":
        """See `MixingBookie.mixing_for`. Version 3 names each request, which makes each entry one of its own."""
        return None if self._entries is self._version3 else self

    @property
    def writable_ledgers(self) -> None:
        """Any: each entry of a mix is a request, and answered by itself."""
        return None

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        """See `MixTaker.add_mix`."""
        return self._add(self._entries, mix, master_key)

    def _add(
        self,
        connection: NetworkConnection[Version2Link] | NetworkConnection[Version3Link],
        run: EntryRun | EntryMix,
        master_key: bytes,
        *,
        recovery: bool = False,
        is_deferred: bool = False,
    ) -> "asyncio.Future[None]":
        future: Promise[None] = self._promise()
        size_bytes = run.size_bytes
        if self._add_bytes + size_bytes > ADD_BYTES_MAX and self._add_bytes:
            future.set_exception(BookieError(BookieCode.ETOOMANYREQUESTS, run.ledger_id, f"{self.name}: too much under way"))
            return future
        self._add_bytes += size_bytes
        future.listen(partial(self._added, size_bytes))
        connection.add(Add(run, master_key, recovery, is_deferred, future))
        return future

    def _added(self, size_bytes: int, _: "asyncio.Future[None]") -> None:
        self._add_bytes -= size_bytes

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """See `BookieClient.read`. One read per entry is sent, all at once; entries beyond `bytes_max` are thrown away."""
        entry_bytes = self._entry_bytes.get(ledger_id, FIRST_ENTRY_BYTES)
        count = max(1, min(count_max, bytes_max // max(1, entry_bytes), ENTRIES_PER_READ_MAX))
        losses = self._entries.losses
        async with self._turns:
            if losses != self._entries.losses:  # with those who went before: it may hang, and then this one would wait again
                raise BookieError(AWAY, ledger_id, f"{self.name}: the connection ended while a read waited for others")
            link = await self._link(ledger_id)
            run = await link.read(ledger_id, first_entry_id, count)
        self._was_read(ledger_id, run.size_bytes // run.count)
        return cut(run, run.first_entry_id, run.count, bytes_max)

    def _was_read(self, ledger_id: int, entry_bytes: int) -> None:
        self._entry_bytes[ledger_id] = (self._entry_bytes.get(ledger_id, entry_bytes) + entry_bytes) // 2
        self._entry_bytes.move_to_end(ledger_id)
        if len(self._entry_bytes) > LEDGERS_MAX:
            self._entry_bytes.popitem(last=False)

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        """See `BookieClient.fence`."""
        return await self._read_last(ledger_id, master_key) or b""

    async def last_entry_id(self, ledger_id: int) -> int:
        """See `BookieClient.last_entry_id`."""
        entry = await self._read_last(ledger_id, None)
        return -1 if entry is None else int.from_bytes(entry[8:16], signed=True)

    async def _read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """Read one last entry at a time for each ledger: the answer to a plain read must never pass for that of a fence."""
        while ledger_id in self._last_reads:
            await asyncio.wait([self._last_reads[ledger_id]])
        turn = self._last_reads[ledger_id] = self._loop.create_future()
        try:
            link = await self._link(ledger_id)
            return await link.read_last(ledger_id, fence_key)
        finally:
            del self._last_reads[ledger_id]
            turn.set_result(None)

    async def _link(self, ledger_id: int) -> Link:
        return await self._entries.link(ledger_id)

    # ExtendedBookie

    def add_deferred(self, run: EntryRun, master_key: bytes) -> "asyncio.Future[None]":
        """See `ExtendedBookie.add_deferred`."""
        return self._add(self._version3, run, master_key, is_deferred=True)

    async def force(self, ledger_id: int) -> None:
        """See `ExtendedBookie.force`."""
        request = api.ForceLedgerRequest(ledgerId=ledger_id)
        await self._ask(api.FORCE_LEDGER, ledger_id, forceLedgerRequest=request)

    async def write_lac(self, ledger_id: int, last_add_confirmed: int, master_key: bytes, record: bytes) -> None:
        """See `ExtendedBookie.write_lac`."""
        request = api.WriteLacRequest(ledgerId=ledger_id, lac=last_add_confirmed, masterKey=master_key, body=record)
        await self._ask(api.WRITE_LAC, ledger_id, writeLacRequest=request)

    async def read_lac(self, ledger_id: int) -> KnownLac:
        """See `ExtendedBookie.read_lac`."""
        response = await self._ask(api.READ_LAC, ledger_id, readLacRequest=api.ReadLacRequest(ledgerId=ledger_id))
        return KnownLac(response.readLacResponse.lacBody, response.readLacResponse.lastEntryBody)

    async def wait_lac(self, ledger_id: int, previous_lac: int, timeout_ms: int) -> PolledLac:
        """See `ExtendedBookie.wait_lac`."""
        request = long_poll_request(ledger_id, previous_lac, timeout_ms)
        waits = timeout_ms / 1000
        read = (await self._ask(api.READ_ENTRY, ledger_id, waits_seconds=waits, readRequest=request)).readResponse
        return PolledLac(read.maxLAC if read.HasField("maxLAC") else -1, read.body)

    async def disk_space(self) -> DiskSpace:
        """See `ExtendedBookie.disk_space`."""
        request = api.GetBookieInfoRequest(requested=FREE_AND_TOTAL)
        info = (await self._ask(api.GET_BOOKIE_INFO, NO_LEDGER, getBookieInfoRequest=request)).getBookieInfoResponse
        return DiskSpace(info.totalDiskCapacity, info.freeDiskSpace)

    async def list_entries(self, ledger_id: int) -> list[tuple[int, int]]:
        """See `ExtendedBookie.list_entries`."""
        request = api.GetListOfEntriesOfLedgerRequest(ledgerId=ledger_id)
        response = await self._ask(api.GET_LIST_OF_ENTRIES_OF_LEDGER, ledger_id, getListOfEntriesOfLedgerRequest=request)
        return decode_availability(response.getListOfEntriesOfLedgerResponse.availabilityOfEntriesOfLedger)

    async def _ask(
        self, operation: api.OperationType, ledger_id: int, *, waits_seconds: float = 0.0, **bodies: object
    ) -> Response:
        link = await self._version3.link(ledger_id)
        response = await link.ask(operation, ledger_id, waits_seconds=waits_seconds, **bodies)
        code = code_of(response.status)
        if code != BookieCode.EOK:
            raise BookieError(code, ledger_id, f"{self.name}: {api.OperationType.Name(operation)}")
        return response

    async def close(self) -> None:
        """Close; requests under way fail. Closing twice is fine."""
        self._entries.close()
        self._version3.close()
