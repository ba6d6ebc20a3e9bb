"""OpenLedger: reads a ledger that another client writes, without disturbing it: nothing is fenced, nothing is written.

It sees what is known to be confirmed: by the header of a later entry, by the writer's explicit word (`explicit_lac`), or by
the end in the metadata. Digests are verified, also of the explicit word. `wait` follows the writer by long polls where the
bookies speak version 3, and looks again now and then where they do not. Every wait has a bound, and what a bookie cannot tell,
another one does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.ledgers import LedgerError, NoSuchEntry
from bookkeeper.ports import BookieClient, ExtendedBookie, PolledLac
from bookkeeper.read.reader import DamagedEntry, EntryReader, lac_in_entry
from bookkeeper.write.quorum_tracker import Quorum
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.digests import lac_in_record
from wire.run import EntryRun

POLL_SECONDS_MAX = 5.0
"""After so long the metadata is read again: no bookie knows that a ledger was closed or has moved."""
SLOW_SECONDS = 1.0
"""Time for which all bookies are waited for; after it one answer is enough."""
LOOK_AGAIN_SECONDS = 0.2
"""Pause before the next look where no bookie can be waited for."""
NOTHING_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER})
ENTRY_BYTES_MAX = 1 << 20


class OpenLedger:
    """One ledger. `refresh` or `wait` before the first read."""

    def __init__(
        self,
        ledger_id: int,
        metadata: LedgerMetadata,
        bookies: Mapping[str, BookieClient],
        reader: EntryReader,
        reread: Callable[[], Awaitable[LedgerMetadata]],
    ) -> None:
        self.ledger_id = ledger_id
        self.last_add_confirmed = -1
        """Only grows."""
        self._metadata, self._bookies, self._reader, self._reread = metadata, bookies, reader, reread

    @property
    def is_closed(self) -> bool:
        """Whether the ledger was seen closed: `last_add_confirmed` is its end then."""
        return self._metadata.state == LedgerState.CLOSED

    async def refresh(self) -> int:
        """Ask the metadata and all bookies of the last ensemble; the last add confirmed. LedgerError when none can tell."""
        await self._follow_metadata()
        if not self.is_closed:
            answers = await self._answers()
            known = [answer for answer in answers if isinstance(answer, int)]
            if not known:
                reasons = "; ".join(map(str, answers)) or "none of its bookies is available"
                raise LedgerError(f"ledger {self.ledger_id}: its last add confirmed is not known ({reasons})")
            self._on_confirmed(max(known))
        return self.last_add_confirmed

    async def wait(self, timeout_ms: int) -> int:
        """Until more is confirmed, the ledger is closed, or the time is over; the last add confirmed. LedgerError."""
        before, loop = self.last_add_confirmed, asyncio.get_running_loop()
        end = loop.time() + timeout_ms / 1000
        while await self.refresh() == before and not self.is_closed and loop.time() < end:
            await self._until_more_may_be(end - loop.time())
        return self.last_add_confirmed

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """See `LedgerReader.read`; NoSuchEntry beyond the last add confirmed."""
        last = self.last_add_confirmed
        if not 0 <= first_entry_id <= last:
            raise NoSuchEntry(f"ledger {self.ledger_id} entry {first_entry_id}: confirmed up to {last}")
        return await self._reader.read(first_entry_id, min(count_max, last + 1 - first_entry_id), bytes_max)

    async def _follow_metadata(self) -> None:
        self._metadata = await self._reread()
        self._reader.follow(self._metadata)
        if self.is_closed:
            self._on_confirmed(self._metadata.last_entry_id)
        else:
            self._on_confirmed(self._metadata.segments[-1].first_entry_id - 1)

    def _on_confirmed(self, last_add_confirmed: int) -> None:
        self.last_add_confirmed = max(self.last_add_confirmed, last_add_confirmed)

    def _last_ensemble(self) -> Sequence[BookieClient]:
        found = [self._bookies.get(name) for name in self._metadata.segments[-1].bookies]
        return [bookie for bookie in found if bookie is not None]

    async def _answers(self) -> Sequence[int | BookieError | DamagedEntry]:
        """Answers of the last ensemble's bookies, without those that have not answered for a while when another one has."""
        asking = [asyncio.ensure_future(self._asked(bookie)) for bookie in self._last_ensemble()]
        try:
            done, waiting = await asyncio.wait(asking, timeout=SLOW_SECONDS) if asking else (set(), set())
            while waiting and not any(isinstance(each.result(), int) for each in done):
                more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done |= more
        finally:
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return [each.result() for each in asking if each in done]

    async def _asked(self, bookie: BookieClient) -> int | BookieError | DamagedEntry:
        try:
            return await self._known_at(bookie)
        except (BookieError, DamagedEntry) as error:
            return error

    # Last add confirmed of one bookie

    async def _known_at(self, bookie: BookieClient) -> int:
        """-1 when it has nothing of the ledger."""
        try:
            if isinstance(bookie, ExtendedBookie):
                known = await bookie.read_lac(self.ledger_id)
                return max(self._lac_in_record(known.record), lac_in_entry(known.last_entry, self.ledger_id, self._metadata))
            last = await bookie.last_entry_id(self.ledger_id)
            if last < 0:
                return -1
            run = await bookie.read(self.ledger_id, last, 1, ENTRY_BYTES_MAX)
            return lac_in_entry(bytes(run.first_entry), self.ledger_id, self._metadata)
        except BookieError as error:
            if error.code in NOTHING_CODES:
                return -1
            raise

    def _lac_in_record(self, record: bytes) -> int:
        if not record:
            return -1
        last = lac_in_record(record, self.ledger_id, self._metadata.digest_type, self._metadata.password)
        if last is None:
            raise DamagedEntry(f"the explicit last add confirmed of ledger {self.ledger_id} has another digest")
        return last

    # Waiting

    async def _until_more_may_be(self, seconds: float) -> None:
        """Wait until a bookie with the next entry says that it is confirmed, or the time is over. The caller checks it again:
        the answer has no digest."""
        quorum = Quorum(self._metadata.ensemble_size, self._metadata.write_quorum, self._metadata.ack_quorum)
        names = [self._metadata.segments[-1].bookies[index] for index in quorum.write_set(self.last_add_confirmed + 1)]
        bookies = [bookie for name in names if isinstance(bookie := self._bookies.get(name), ExtendedBookie)]
        timeout_ms = max(1, int(1000 * min(seconds, POLL_SECONDS_MAX)))
        polls = [
            asyncio.ensure_future(bookie.wait_lac(self.ledger_id, self.last_add_confirmed, timeout_ms)) for bookie in bookies
        ]
        has_more = False
        try:
            async with asyncio.timeout(timeout_ms / 1000 + SLOW_SECONDS):
                has_more = await self._one_has_more(polls)
        except TimeoutError:  # a bookie that hangs says nothing, not even that nothing has come
            pass
        finally:
            for poll in polls:
                poll.cancel()
            # A later answer or error of these comes too late: refresh asks the bookies again.
            await asyncio.gather(*polls, return_exceptions=True)
        if not has_more:
            await asyncio.sleep(min(LOOK_AGAIN_SECONDS, seconds))

    async def _one_has_more(self, polls: "Sequence[asyncio.Task[PolledLac]]") -> bool:
        for poll in asyncio.as_completed(polls):
            try:
                if (await poll).last_add_confirmed > self.last_add_confirmed:
                    return True
            except BookieError:  # the others are still waited for; refresh says when there are none
                continue
        return False
