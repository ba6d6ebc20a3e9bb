"""Part: one append in flight, from the producer that sent it to the journal and back. Some entries of a buffer that many share.

One object an append, made once: it has the ids that its ledger gave it, the owner that hears of its end, and the state that
the ledger client keeps while bookies store it. The bytes are sealed in the shared buffer, so that thousands of small
appends of many ledgers are one buffer, one hand-over to a bookie and one answer (`bookkeeper.write.together`).
"""

import asyncio
from array import array
from typing import Any, NamedTuple, Protocol

from bookkeeper.ports import MixTaker
from wire.kernels.rows import PartRow
from wire.run import Buffer, EntryBatch, EntryRun


class Route(NamedTuple):
    """Bookies that get the parts of a ledger, and their seats. Parts of ledgers with the same route are sent together."""

    master_key: bytes
    seats: tuple[int, ...]
    takers: tuple[MixTaker, ...]


class LedgerAdds(Protocol):
    """The appends of one ledger that are under way, as the bookies' answers reach them: `counted_adds.CountedAdds`."""

    route: Route | None

    def is_in(self, seat: int) -> bool: ...
    def part_stored(self, part: "Part", seat: int) -> None: ...
    def part_failed(self, part: "Part", seat: int, error: BaseException) -> None: ...


class PartOwner(Protocol):
    """Hears of the end of a part."""

    def part_answered(self, part: "Part", error: BaseException | None) -> None:
        """Stored, or failed. Called once. Must not raise."""


class NotTaken:
    """The owner of a part that no ledger has taken yet."""

    def part_answered(self, part: "Part", error: BaseException | None) -> None:
        raise AssertionError(f"an answer to {part.count} entries that nobody has taken: {error}")


NOT_TAKEN = NotTaken()


class PartsBuffer(Protocol):
    """The entries of many parts. `EntryBatch` and `EntryRun` are such buffers too."""

    @property
    def buffer(self) -> Buffer: ...
    @property
    def offsets(self) -> "array[int]":
        """Entry i is `buffer[offsets[i]:offsets[i + 1]]`."""

    @property
    def header_bytes(self) -> int:
        """Number of bytes in each entry that are room for its header."""


class Part(PartRow):
    """The `count` entries of `mix` from the index `start` on: one append of one ledger."""

    __slots__ = ()

    adds: LedgerAdds
    """Owner of this append. `acked`, `piece`, `last_add_confirmed` and `length_before` are for the owner and `together` alone:
    the seats that have answered, as bits; the number by which the quorum tracker knows the append; and the values in the
    headers."""
    mix: PartsBuffer
    owner: PartOwner

    def __init__(self, mix: PartsBuffer, start: int, count: int, owner: PartOwner, source: Any, began: float) -> None:
        """`source` is the owner's alone. `began`: the loop's time."""
        offsets = mix.offsets
        self.mix, self.start, self.count = mix, start, count
        self.owner, self.source, self.began = owner, source, began
        self.size_bytes = offsets[start + count] - offsets[start]
        self.ledger_id = self.first_entry_id = self.last_entry_id = -1
        self.error: BaseException | None = None
        self.is_done = False

    @property
    def payload_bytes(self) -> int:
        return self.size_bytes - self.count * self.mix.header_bytes

    def run(self) -> EntryRun:
        """The sealed entries. A small part of a large buffer is copied: it must not keep the buffer alive."""
        mix = self.mix
        if not isinstance(mix, EntryRun):
            buffer, offsets = self._own()
            self.mix = mix = EntryRun(self.ledger_id, self.first_entry_id, buffer, offsets, mix.header_bytes)
            self.start = 0
        return mix

    def _own(self) -> "tuple[Buffer, array[int]]":
        mix, start = self.mix, self.start
        offsets = mix.offsets[start : start + self.count + 1]
        if 2 * self.size_bytes >= len(mix.buffer):
            return mix.buffer, offsets
        at = offsets[0]
        return bytes(memoryview(mix.buffer)[at : offsets[-1]]), array("I", [offset - at for offset in offsets])

    def batch(self) -> EntryBatch:
        """A copy with room for new headers, to be appended elsewhere."""
        mix, start = self.mix, self.start
        offsets = mix.offsets[start : start + self.count + 1]
        at = offsets[0]
        copied = bytearray(memoryview(mix.buffer)[at : offsets[-1]])
        return EntryBatch(copied, array("I", [offset - at for offset in offsets]), mix.header_bytes, self.count)

    # As a future

    def done(self) -> bool:
        return self.is_done

    def stored(self) -> None:
        """The part is stored where its ids say. Notifies the owner."""
        self.is_done = True
        self.owner.part_answered(self, None)

    def set_result(self, run: EntryRun) -> None:
        """Stored as this run, perhaps in another ledger than the first one that took it."""
        self.mix, self.start = run, 0
        self.ledger_id, self.first_entry_id, self.last_entry_id = run.ledger_id, run.first_entry_id, run.last_entry_id
        self.stored()

    def set_exception(self, error: BaseException) -> None:
        """The part is not stored, as far as is known."""
        self.error = error
        self.is_done = True
        self.owner.part_answered(self, error)

    def fail(self, loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
        """Fail as `set_exception` does, in the next turn, when futures report failures."""
        loop.call_soon(self.set_exception, error)


class AppendedRun(Part):
    """A run that is appended by itself, and whose end a future tells."""

    __slots__ = ("future",)

    def __init__(self, run: EntryRun, future: "asyncio.Future[EntryRun]", began: float) -> None:
        offsets = run.offsets
        self.mix, self.start, self.count = run, 0, len(offsets) - 1
        self.future, self.began = future, began
        self.size_bytes = offsets[-1] - offsets[0]
        self.ledger_id, self.first_entry_id = run.ledger_id, run.first_entry_id
        self.last_entry_id = run.first_entry_id + self.count - 1

    def stored(self) -> None:
        if not self.future.done():
            self.future.set_result(self.run())

    def fail(self, loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)
