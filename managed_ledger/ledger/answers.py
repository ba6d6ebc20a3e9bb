"""Who hears of the end of an append: a future, or the source of a part. Holds nothing."""

import asyncio
from typing import Any, Protocol, TypeAlias

from bookkeeper.parts import Part
from managed_ledger.errors import ManagedLedgerError
from wire.run import EntryBatch, EntryRun

Answer: TypeAlias = "asyncio.Future[EntryRun] | Part"
"""Of a part, the part."""
Append: TypeAlias = tuple[EntryBatch | Part, Answer]
"""What is appended, and who hears of its end."""


class PartSource(Protocol):
    """`Part.source` of the parts that a managed ledger takes."""

    def part_stored(self, part: Any) -> None:
        """Stored where its ids say. Must not raise."""

    def part_failed(self, part: Any, error: BaseException) -> None:
        """As an append whose future fails with this error. Must not raise."""


def tell_failure(answer: Answer, failure: ManagedLedgerError) -> None:
    """An append has failed: each hears of it with an exception of its own."""
    if isinstance(answer, Part):
        answer.source.part_failed(answer, again(failure))
    elif not answer.done():
        answer.set_exception(again(failure))


def again(failure: ManagedLedgerError) -> ManagedLedgerError:
    """Of the same kind, for another future: an exception object belongs to one."""
    return type(failure)(*failure.args)
