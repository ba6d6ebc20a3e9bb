"""Answers to appends: a future, or the source of a part, gets the result. Holds nothing."""

import asyncio
from typing import Any, NamedTuple, Protocol, TypeAlias

from bookkeeper.write.parts import Part
from managed_ledger.errors import ManagedLedgerError
from wire.run import EntryBatch, EntryRun

Answer: TypeAlias = "asyncio.Future[EntryRun] | Part"
"""Answer to an append; a part is its own answer."""


class Append(NamedTuple):
    """A batch that is appended, the waiter for its end, and the time at which it came. A part is its own append and answer."""

    batch: EntryBatch
    answer: Answer
    began: float


def answered_by(append: Append | Part) -> Answer:
    return append if isinstance(append, Part) else append.answer


def sent_again(batch: EntryBatch, append: Append | Part) -> Append:
    """Entries appended and not stored, with room for new ids. Their time goes on."""
    return Append(batch, answered_by(append), append.began)


class PartSource(Protocol):
    """`Part.source` of the parts that a managed ledger takes."""

    def part_stored(self, part: Any) -> None:
        """Stored where its ids say. Must not raise."""

    def part_failed(self, part: Any, error: BaseException) -> None:
        """A part failed, as an append whose future fails with this error. Must not raise."""


def tell_failure(answer: Answer, failure: ManagedLedgerError) -> None:
    """An append has failed: each waiter gets an exception of its own."""
    if isinstance(answer, Part):
        answer.source.part_failed(answer, again(failure))
    elif not answer.done():
        answer.set_exception(again(failure))


def again(failure: ManagedLedgerError) -> ManagedLedgerError:
    """Exception of the same kind for another future: an exception object belongs to one."""
    return type(failure)(*failure.args)
