"""Trimming: the first ledgers that every cursor has consumed and retention does not keep. Pure.

Cursors of readers (not durable) count as long as the reader is there: what it is about to read does not vanish under it. In
Apache only durable cursors hold ledgers (ManagedCursorContainer), and a reader that falls behind skips what is gone.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from managed_ledger.settings import MEGABYTE, ManagedLedgerSettings
from wire.position import Position

from .sequence import LedgerSequence


@dataclass(frozen=True, slots=True)
class Retention:
    """Consumed ledgers are kept while they are younger than `age_ms` or the log without them would be below `size_bytes`.

    -1: without bound. If either is 0, nothing is kept for the other's sake, as in Apache.
    """

    age_ms: int = 0
    size_bytes: int = 0

    def keeps(self, closed_at_ms: int, size_bytes_without: int, now_ms: int) -> bool:
        if self.age_ms == 0 or self.size_bytes == 0:
            return False
        is_young = self.age_ms < 0 or now_ms - closed_at_ms < self.age_ms
        is_small = self.size_bytes < 0 or size_bytes_without < self.size_bytes
        return is_young and is_small


NO_RETENTION = Retention()


def retention(settings: ManagedLedgerSettings) -> Retention:
    minutes, megabytes = settings.default_retention_time_in_minutes, settings.default_retention_size_in_mb
    return Retention(
        max(minutes, -1) * 60_000 if minutes > 0 else minutes, megabytes * MEGABYTE if megabytes > 0 else megabytes
    )


def trimmable(
    sequence: LedgerSequence, marks: Iterable[Position], retention: Retention, now_ms: int, *, is_terminated: bool = False
) -> list[int]:
    """Their ids, ascending. `marks` are the mark-delete positions of the cursors; with none everything is consumed.

    The last ledger stays: the one that is written, or of a terminated log the one that was (ManagedLedgerImpl's
    currentLedger). Later readers find the last entries there, and their place.
    """
    consumed = min((sequence.entries_through(mark) for mark in marks), default=sequence.end_index)
    left = sequence.size_bytes
    found: list[int] = []
    for span in sequence:
        left -= span.size_bytes
        is_last = is_terminated and span.end_index == sequence.end_index
        if span.is_open or is_last or span.end_index > consumed or retention.keeps(span.closed_at_ms, left, now_ms):
            break
        found.append(span.ledger_id)
    return found
