"""Operations: what each request but an add makes the bookie do, and its answer. Knows nothing of sockets.

A request waits while its peer does not read: the answer to a read may be as large as a frame.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, assert_never

from bookie.server.confirmations import Confirmations, LacRecord
from bookie.server.request_stats import RequestStats
from bookie.striped_bookie import AnyBookie
from wire.bookie.availability import encode_availability
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.requests import (
    LAST_ENTRY,
    Add,
    Answers,
    Authenticate,
    BatchRead,
    DescribeDisk,
    Force,
    ListEntries,
    LongPoll,
    Operation,
    Read,
    ReadLac,
    Rejected,
    StartTls,
    WriteLac,
)
from wire.bookie.runs import ReadRun
from wire.bookie.version2 import BATCH_OVERHEAD_BYTES, Version2Answers
from wire.bookie.version3 import Version3Answers
from wire.kernels.bookie_responses import plain_responses, read_responses
from wire.run import Buffer, EntryRun

READ_BYTES_MAX = 512 * 1024
"""Read at once for a run of reads, unless one entry is larger."""
FIRST_PICKED, PICKED_MAX = 64, 2000
"""Scattered entries that are read together: at first, while their size is not known, and at most."""
AUTHENTICATION_OFF = "AuthDisabledPlugin"
"""Name of the plugin with which a bookie that asks for no authentication answers (AuthProviderFactoryFactory)."""


class Peer(Protocol):
    """Peer that asked."""

    address: str

    @property
    def is_open(self) -> bool: ...
    def answer(self, frames: bytes) -> None: ...
    async def writable(self) -> None:
        """Wait until the peer reads, or is gone."""


class Operations:
    """Operations of one bookie."""

    def __init__(
        self,
        bookie: AnyBookie,
        confirmations: Confirmations,
        batch_read_bytes_max: int,
        stats: RequestStats,
    ) -> None:
        self._stats, self._now = stats, stats.now
        self._bookie = bookie
        self._confirmations = confirmations
        self._batch_read_bytes_max = batch_read_bytes_max
        self.local_reads: tuple[bytes, bytes] | None = None
        """Name and token of the socket where they are asked for; None: there is none."""

    async def read_run(self, run: ReadRun, peer: Peer) -> None:
        """Answer each read of a run, in order."""
        header, at, end = run.header & 0xFFFF0000, run.first_entry_id, run.first_entry_id + run.count
        while at < end and peer.is_open:
            await peer.writable()
            began = self._now()
            try:
                entries = await self._bookie.read(run.ledger_id, at, end - at, READ_BYTES_MAX)
            except BookieError as error:
                count = end - at if error.code == BookieCode.ENOLEDGER else 1
                self._stats.reads.record(self._now() - began, count, has_failed=True)
                peer.answer(plain_responses(header, error.code, run.ledger_id, at, count))
                at += count
            else:
                self._stats.reads.record(self._now() - began, entries.count)
                self._stats.read_bytes += entries.size_bytes
                peer.answer(read_responses(entries, header))
                at += entries.count

    async def read_scattered(self, runs: Sequence[ReadRun], peer: Peer) -> None:
        """Answer each read of short runs of one ledger, in any order: scattered entries are read together, many at a time.

        Where a ledger is striped over more bookies than hold each entry, a bookie has at most a write quorum in a row.
        """
        header, ledger_id = runs[0].header & 0xFFFF0000, runs[0].ledger_id
        left = [entry_id for run in runs for entry_id in range(run.first_entry_id, run.first_entry_id + run.count)]
        count = FIRST_PICKED
        while left and peer.is_open:
            await peer.writable()
            began, chosen = self._now(), left[:count]
            found = await self._bookie.pick([(ledger_id, chosen)], READ_BYTES_MAX)
            left = left[count:]
            size = sum(run.size_bytes for run in found)
            if found:
                self._stats.reads.record(self._now() - began, len(found))
                self._stats.read_bytes += size
                peer.answer(b"".join([read_responses(run, header) for run in found]))
                count = max(1, min(PICKED_MAX, READ_BYTES_MAX * len(found) // size))
            if len(found) < len(chosen):  # some are not here, or damaged, or too large for these: as they are read alone
                missing = Counter(chosen) - Counter(run.first_entry_id for run in found)
                for entry_id in missing.elements():
                    await self.read_run(ReadRun(header, ledger_id, entry_id, 1, 0), peer)

    async def perform(self, operation: Operation, answers: Answers, peer: Peer) -> None:
        """Do one request and answer it."""
        await peer.writable()
        stats, began, has_failed = self._stats.of(operation), self._now(), True
        try:
            answer = await self._answer(operation, answers)
            has_failed = False
        except BookieError as error:
            answer = _refusal(operation, answers, error.code)
        except OSError:
            peer.answer(_refusal(operation, answers, BookieCode.EIO))
            raise
        finally:
            if stats is not None:
                stats.record(self._now() - began, has_failed=has_failed)
        peer.answer(answer)

    async def _answer(self, operation: Operation, answers: Answers) -> bytes:
        if isinstance(answers, Version2Answers):
            return await self._answer_version2(operation, answers)
        assert isinstance(answers, Version3Answers), answers
        return await self._answer_version3(operation, answers)

    async def _answer_version2(self, operation: Operation, answers: Version2Answers) -> bytes:
        match operation:
            case Read():
                entry = await self._read(operation)
                return answers.read(BookieCode.EOK, operation.ledger_id, operation.entry_id, entry)
            case BatchRead():
                return answers.batch_read(BookieCode.EOK, operation, await self._read_batch(operation))
            case Authenticate():
                return answers.authenticated(AUTHENTICATION_OFF, b"")
        raise AssertionError(f"version 2 has no {operation}")

    async def _answer_version3(self, operation: Operation, answers: Version3Answers) -> bytes:
        match operation:
            case Read():
                entry = await self._read(operation)
                lac = await self._lac_if_known(operation.ledger_id) if operation.fence_key is None else None
                return answers.read(BookieCode.EOK, operation.ledger_id, operation.entry_id, entry, lac)
            case LongPoll():
                return await self._poll(operation, answers)
            case WriteLac():
                return self._write_lac(operation, answers)
            case ReadLac():
                return await self._read_lac(operation.ledger_id, answers)
            case Force():
                # An add is answered when it is on disk, so what this client knows of is there already.
                return answers.forced(BookieCode.EOK, operation.ledger_id)
            case ListEntries():
                ranges = self._bookie.entry_ranges(operation.ledger_id)
                return answers.entries_listed(BookieCode.EOK, operation.ledger_id, encode_availability(ranges))
            case DescribeDisk():
                usage = await self._bookie.usage()
                total = usage.total_bytes if operation.wants_total else None
                free = usage.free_bytes if operation.wants_free else None
                local = self.local_reads if operation.wants_local_reads else None
                return answers.disk_described(BookieCode.EOK, total, free, local)
            case Authenticate():
                return answers.authenticated(AUTHENTICATION_OFF, b"")
            case Add() | BatchRead() | StartTls() | Rejected():
                raise AssertionError(f"not to be answered here: {operation}")
        assert_never(operation)

    # Reads

    async def _read(self, read: Read) -> memoryview:
        if read.fence_key is not None:
            await self._bookie.ensure_fenced(read.ledger_id, read.fence_key)
        return await self._entry(read.ledger_id, read.entry_id)

    async def _entry(self, ledger_id: int, entry_id: int) -> memoryview:
        if entry_id == LAST_ENTRY:
            entry_id = await self._bookie.last_entry_id(ledger_id)
            if entry_id < 0:
                raise BookieError(BookieCode.ENOENTRY, ledger_id, "there is none")
        run = await self._bookie.read(ledger_id, entry_id, 1, 1)
        self._stats.read_bytes += run.size_bytes
        return run.first_entry

    async def _read_batch(self, request: BatchRead) -> tuple[EntryRun, ...]:
        """Read at least the first entry, up to the first one after it that cannot be read."""
        if request.fence_key is not None:
            await self._bookie.ensure_fenced(request.ledger_id, request.fence_key)
        limit = self._batch_read_bytes_max
        room = min(request.bytes_max if request.bytes_max > 0 else limit, limit) - BATCH_OVERHEAD_BYTES
        count = request.count_max if request.count_max > 0 else limit // 4
        at, runs = request.first_entry_id, list[EntryRun]()
        while count > 0 and (room > 0 or not runs):
            try:
                run = await self._bookie.read(request.ledger_id, at, count, max(1, room))
            except BookieError:
                if not runs:
                    raise
                break
            fitting = _fitting(run, room)
            if runs and not fitting:
                break
            run = run.entries(at, max(1, fitting))
            runs.append(run)
            self._stats.read_bytes += run.size_bytes
            at, count, room = at + run.count, count - run.count, room - run.size_bytes - 4 * run.count
        return tuple(runs)

    # The last add confirmed

    async def _last_add_confirmed(self, ledger_id: int) -> int:
        """The highest that is known of."""
        explicit = self._confirmations.record(ledger_id).last_add_confirmed
        return max(explicit, await self._bookie.last_add_confirmed(ledger_id))

    async def _lac_if_known(self, ledger_id: int) -> int | None:
        """Last add confirmed beside an entry that was found; an unreadable last entry does not withhold that one."""
        try:
            return await self._last_add_confirmed(ledger_id)
        except BookieError:
            return None

    async def _poll(self, poll: LongPoll, answers: Version3Answers) -> bytes:
        ledger_id, last = poll.ledger_id, await self._last_add_confirmed(poll.ledger_id)
        if last <= poll.previous_lac and poll.timeout_ms:
            await self._confirmations.wait(ledger_id, poll.previous_lac, poll.timeout_ms / 1000)
            last = await self._last_add_confirmed(ledger_id)
        entry: Buffer = b""
        if not poll.piggyback:
            entry = await self._entry(ledger_id, LAST_ENTRY)
        elif last > poll.previous_lac:
            entry = await self._entry_if_here(ledger_id, poll.previous_lac + 1)
        return answers.read(BookieCode.EOK, ledger_id, LAST_ENTRY if not entry else _entry_id(entry), entry, last)

    async def _entry_if_here(self, ledger_id: int, entry_id: int) -> Buffer:
        """Another bookie may have it: of a striped ledger each has a part."""
        try:
            return await self._entry(ledger_id, entry_id)
        except BookieError as error:
            if error.code != BookieCode.ENOENTRY:
                raise
            return b""

    def _write_lac(self, write: WriteLac, answers: Version3Answers) -> bytes:
        if self._bookie.read_only_reason:
            raise BookieError(BookieCode.EREADONLY, write.ledger_id, self._bookie.read_only_reason)
        self._bookie.claim(write.ledger_id, write.master_key, "at the last add confirmed")
        self._confirmations.remember(write.ledger_id, LacRecord(write.last_add_confirmed, write.record))
        return answers.lac_written(BookieCode.EOK, write.ledger_id)

    async def _read_lac(self, ledger_id: int, answers: Version3Answers) -> bytes:
        record = self._confirmations.record(ledger_id).record
        try:
            entry: Buffer = await self._entry(ledger_id, LAST_ENTRY)
        except BookieError as error:
            if error.code != BookieCode.ENOENTRY or not record:
                raise
            entry = b""
        return answers.lac(BookieCode.EOK, ledger_id, record, entry)


def _fitting(run: EntryRun, room: int) -> int:
    """Number of the run's first entries that fit, four bytes for the size of each included."""
    start = run.offsets[0]
    return bisect_right(range(1, run.count + 1), room, key=lambda count: run.offsets[count] - start + 4 * count)


def _entry_id(entry: Buffer) -> int:
    return int.from_bytes(entry[8:16], signed=True)


def _refusal(operation: Operation, answers: Answers, code: BookieCode) -> bytes:
    """The answer that says no in the operation's own form."""
    match operation:
        case Read():
            return answers.read(code, operation.ledger_id, operation.entry_id)
        case LongPoll():
            return answers.read(code, operation.ledger_id, LAST_ENTRY)
        case BatchRead():
            assert isinstance(answers, Version2Answers), answers
            return answers.batch_read(code, operation)
        case WriteLac() | ReadLac() | Force() | ListEntries() | DescribeDisk():
            assert isinstance(answers, Version3Answers), answers
            return _refusal_version3(operation, answers, code)
        case Add() | Authenticate() | StartTls() | Rejected():
            raise AssertionError(f"cannot be refused here: {operation}")
    assert_never(operation)


def _refusal_version3(
    operation: WriteLac | ReadLac | Force | ListEntries | DescribeDisk, answers: Version3Answers, code: BookieCode
) -> bytes:
    match operation:
        case WriteLac():
            return answers.lac_written(code, operation.ledger_id)
        case ReadLac():
            return answers.lac(code, operation.ledger_id)
        case Force():
            return answers.forced(code, operation.ledger_id)
        case ListEntries():
            return answers.entries_listed(code, operation.ledger_id)
        case DescribeDisk():
            return answers.disk_described(code)
    assert_never(operation)
