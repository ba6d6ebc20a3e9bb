"""The contract of a topic towards its operators: upkeep by policies, and operations on places. See `contract.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from managed_ledger.contract import ManagedLedger
from wire.position import Position
from wire.run import EntryRun

from ..policies.policies import NOTHING_SAID, EffectivePolicies, TopicPolicies
from .statistics.compaction_stats import CompactedLedgerFacts, CompactionStatus


@dataclass(frozen=True, slots=True)
class BacklogAnalysis:
    """Counts made by reading; `is_whole` False: the bound came first (AnalyzeSubscriptionBacklogResult.aborted)."""

    first: Position | None
    last: Position | None
    entries: int
    messages: int
    markers: int
    is_whole: bool


class TopicUpkeep(Protocol):
    """Called by the broker's housekeeping; cheap where there is nothing to do."""

    @property
    def policies(self) -> EffectivePolicies: ...
    def apply(self, namespace: TopicPolicies, topic: TopicPolicies = NOTHING_SAID) -> None:
        """Applies the policies of its namespace and its own, from now on."""

    async def expire(self) -> None:
        """Acknowledges messages older than the time to live."""

    async def expire_subscriptions(self) -> None:
        """Deletes subscriptions that were unused for too long."""

    async def check_quotas(self) -> None:
        """Applies the policy for a backlog that is too large."""

    def check_compaction(self) -> None:
        """Begin one when there is more to compact than the policy's threshold."""

    def compact(self) -> None:
        """Begin one. CompactionUnderWay; NOT_ALLOWED where topics are not compacted."""

    @property
    def compaction_status(self) -> CompactionStatus: ...
    async def compacted_ledger(self) -> CompactedLedgerFacts | None:
        """None: the topic was never compacted."""


class TopicOperations(Protocol):
    """Operations on subscriptions by name: SUBSCRIPTION_NOT_FOUND. Moves of a place forward leave consumers connected."""

    @property
    def log(self) -> ManagedLedger:
        """The topic's log, for looking at, not for writing."""

    def has_subscription(self, subscription: str) -> bool: ...
    def subscription_names(self) -> list[str]: ...
    def durable_subscription_names(self) -> list[str]:
        """Names of those with a backlog of their own: not compaction's."""

    def backlog_entries(self, subscription: str) -> int: ...
    async def skip(self, subscription: str, entries: int) -> int:
        """Acknowledges the oldest entries of the backlog; returns their number."""

    async def clear_backlog(self, subscription: str) -> int:
        """Acknowledges the whole backlog; returns the number of entries."""

    async def expire_older_than(self, subscription: str, seconds: int) -> int: ...
    async def expire_through(self, subscription: str, position: Position) -> int:
        """Expires entries up to and including that one; 0 when it is beyond the end."""

    async def reset(self, subscription: str, position: Position, ack_set: Sequence[int] = ()) -> None:
        """`position` is the first that is delivered again; consumers are closed and come back."""

    async def reset_to_time(self, subscription: str, publish_time_ms: int) -> None: ...
    async def peek(self, subscription: str, number: int) -> EntryRun | None:
        """The `number`-th entry (from 1) that is not acknowledged."""

    async def read(self, position: Position) -> EntryRun | None:
        """Exactly that entry."""

    async def first_published_at_or_after(self, publish_time_ms: int) -> Position:
        """LATEST when all are older."""

    async def first_with_index_at_or_after(self, index: int) -> Position | None:
        """None: no message has it yet. NOT_ALLOWED when messages get no index here."""

    async def analyze_backlog(self, subscription: str, start: Position | None) -> BacklogAnalysis:
        """Counted by reading, within the bounds of the settings."""

    async def examine(self, number: int, *, from_earliest: bool) -> EntryRun | None:
        """The `number`-th entry (from 1) from either end, or the last one that way; None: there is no entry."""

    def size_after(self, position: Position) -> int:
        """Bytes from that entry on, about (`backlog_bytes`)."""

    async def earliest_publish_time_ms(self, subscription: str) -> int:
        """Publish time of the first unacknowledged message; 0 when all are acknowledged."""

    async def oldest_in_backlog(self) -> tuple[str, int] | None:
        """The durable subscription that is furthest behind, and the age of its next message in seconds."""

    async def change_properties(self, edit: Callable[[dict[str, str]], object]) -> None:
        """Stores the result of `edit` on the topic's properties, which `log` has."""

    def subscription_properties(self, subscription: str) -> Mapping[str, str]: ...
    async def set_subscription_properties(self, subscription: str, properties: Mapping[str, str]) -> None: ...
    async def truncate(self) -> None:
        """Clears the backlog of every subscription and deletes every ledger but the open one, despite retention."""
