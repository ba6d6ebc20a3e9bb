"""AuditorElection: takes part in the election of the auditor, together with Apache's, and audits while it has won.

Owns this process's vote and the auditor's task. A lost session ends the vote, and another process may be the auditor already:
ours ends at once, and AuditorElection stands again with a new vote. Two auditors for a moment do no harm: marks are merged.

The lowest number among the ephemeral sequential nodes `auditorelection/V_<number>` is the auditor's (ZkLedgerAuditorManager);
a node's value names its candidate.
"""

import asyncio
import logging
import re
from collections.abc import Iterable

from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.auditor.auditor import Auditor
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.underreplication.tree import (
    AUDITOR_ELECTION,
    AUDITOR_VOTE_PREFIX,
    MalformedUnderreplication,
    decode_vote,
    encode_vote,
)
from metadata.sessions import SessionEvent, Sessions
from metadata.store import MetadataError, MetadataStore, NoNode, OutcomeUnknown
from ports.logs import line

RETRY_SECONDS = 5.0

_log = logging.getLogger(__name__)
_VOTE = re.compile(r"V_(-?\d+)")


def winning_vote(names: Iterable[str]) -> str | None:
    """Node in `auditorelection` whose candidate is the auditor; None: there are no candidates."""
    votes = [(int(match[1]), name) for name in names if (match := _VOTE.fullmatch(name)) is not None]
    return min(votes)[1] if votes else None


async def elected_auditor(store: MetadataStore) -> str | None:
    """Name of the elected auditor; None: there is none. MetadataError."""
    vote = winning_vote(await store.children(AUDITOR_ELECTION))
    found = None if vote is None else await store.get(f"{AUDITOR_ELECTION}/{vote}")
    if found is None:
        return None
    try:
        return decode_vote(found.value)
    except MalformedUnderreplication as error:
        return f"unknown ({error})"


class AuditorElection:
    """`run` until cancelled; then `withdraw`."""

    def __init__(self, client: RepairClient, sessions: Sessions, counters: RepairCounters) -> None:
        self._client, self._sessions, self._counters = client, sessions, counters
        self._vote: str | None = None
        """The name of the vote's node."""
        self._vote_may_be_there = False
        """The answer to its making was lost, and with it the node's name."""
        self._changed = asyncio.Event()
        self._has_session = True
        self._auditing: asyncio.Task[None] | None = None

    @property
    def is_auditor(self) -> bool:
        return self._auditing is not None

    async def run(self) -> None:
        """Until cancelled. A failure of the metadata is waited out."""
        ends = [
            self._client.store.watch(AUDITOR_ELECTION, lambda _: self._changed.set()),
            self._sessions.watch_session(self._on_session),
        ]
        try:
            while True:
                self._changed.clear()
                try:
                    await self._stand()
                except (MetadataError, LedgerError) as error:
                    _log.warning(line("election of the auditor waits", reason=error, seconds=RETRY_SECONDS))
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                await self._until_changed()
        finally:
            for end in ends:
                end()
            await self._end_auditing()

    async def withdraw(self) -> None:
        """Another is elected at once."""
        if self._vote is not None:
            try:
                await self._client.store.delete(f"{AUDITOR_ELECTION}/{self._vote}")
            except NoNode:
                self._vote = None
            except MetadataError as error:
                _log.warning(line("vote not removed: it ends with the session", reason=error))

    def _on_session(self, event: SessionEvent) -> None:
        self._has_session = event is not SessionEvent.SESSION_LOST
        self._changed.set()

    async def _until_changed(self) -> None:
        """Or until the auditor has ended, which it should not do by itself: that is raised."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([changed, *([self._auditing] if self._auditing else [])], return_when=asyncio.FIRST_COMPLETED)
            if self._auditing is not None and self._auditing.done():
                self._auditing.result()
        finally:
            changed.cancel()

    async def _stand(self) -> None:
        if not self._has_session:
            await self._end_auditing()
            return
        names = await self._client.store.children(AUDITOR_ELECTION)
        if self._vote not in names:
            await self._end_auditing()
            await self._make_vote()
            names = await self._client.store.children(AUDITOR_ELECTION)
        if winning_vote(names) != self._vote:
            await self._end_auditing()
        elif self._auditing is None:
            await self._client.store.put(AUDITOR_ELECTION, encode_vote(self._client.owner))
            _log.info(line("elected as the auditor", vote=self._vote))
            self._auditing = asyncio.create_task(Auditor(self._client, self._counters).run(), name="auditor")

    async def _make_vote(self) -> None:
        store = self._client.store
        if self._vote_may_be_there:
            await self._delete_strays()
        self._counters.auditor_election_attempts += 1
        try:
            stat = await store.put(AUDITOR_VOTE_PREFIX, encode_vote(self._client.owner), ephemeral=True, sequential=True)
        except OutcomeUnknown:
            self._vote_may_be_there = True
            raise
        self._vote = stat.path.rpartition("/")[2]

    async def _delete_strays(self) -> None:
        """Delete our votes whose names were lost: one of them would be elected, and audit nothing."""
        store, own = self._client.store, encode_vote(self._client.owner)
        for name in await store.children(AUDITOR_ELECTION):
            found = await store.get(f"{AUDITOR_ELECTION}/{name}")
            if found is not None and found.value == own:
                try:
                    await store.delete(found.stat.path)
                except NoNode:
                    continue
        self._vote_may_be_there = False

    async def _end_auditing(self) -> None:
        auditing, self._auditing = self._auditing, None
        if auditing is not None:
            auditing.cancel()
            await asyncio.wait([auditing])
            _log.info(line("not the auditor any more"))
