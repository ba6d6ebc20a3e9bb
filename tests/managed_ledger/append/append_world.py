"""An `Appender` by itself, over ledgers in memory whose writers also take parts."""

import asyncio
from collections.abc import Mapping
from typing import Any

from bookkeeper.ledgers import DEFAULT_QUORUMS, LedgerWriter, Quorums
from bookkeeper.write.parts import NOT_TAKEN, Part
from managed_ledger.append.append_driver import Appender
from managed_ledger.append.creation_driver import LedgerCreation
from managed_ledger.append.listeners import AppendListeners, ConfirmedListeners, New, run_of
from managed_ledger.append.rollover import RolloverLimits
from managed_ledger.ledgers.deletion_driver import LedgerDeletion
from managed_ledger.ledgers.metadata_driver import LogMetadata
from managed_ledger.ledgers.sequence import LedgerSequence
from managed_ledger.meters import LedgerMeters, SharedMeters
from metadata.memory import MemoryStore
from ports.loop.promise import listen
from wire.run import EntryRun

from ..fake_ledgers import FakeLedger, FakeLedgers, FakeLedgerStore, FakeWriter, batch, payloads
from ..ledger_world import NO_NODE, FakeClock

ENDLESS = RolloverLimits(1000, 1 << 30, 0.0, None)


class PartWriter(FakeWriter):
    """A writer that stores a part as it stores a run: after `step_s`, in order."""

    def take_part(self, part: Part) -> bool:
        answer = self.append(part.batch())
        part.ledger_id, part.first_entry_id = self.ledger_id, self.next_entry_id - part.count
        part.last_entry_id = self.next_entry_id - 1
        answer.add_done_callback(lambda done: answer_part(part, done))
        return True

    async def close(self) -> None:
        assert not self._pending, "a ledger is closed after its last answer"
        await super().close()


def answer_part(part: Part, done: "asyncio.Future[EntryRun]") -> None:
    error = done.exception()
    if error is None:
        part.set_result(done.result())
    else:
        part.set_exception(error)


class PartStore(FakeLedgerStore):
    """Ledgers whose writers take parts. `unforeseen` is raised by the next creation."""

    unforeseen: Exception | None = None

    async def create(self, custom_metadata: Mapping[str, bytes], quorums: Quorums = DEFAULT_QUORUMS) -> LedgerWriter:
        if self.unforeseen is not None:
            raise self.unforeseen
        writer = await super().create(custom_metadata, quorums)
        return PartWriter(self, self.shared.ledgers[writer.ledger_id])


class NotedListeners(ConfirmedListeners):
    """Listeners that note each run in `told`."""

    def __init__(self, told: list[Any]) -> None:
        super().__init__()
        self._told = told

    def confirmed(self, new: New) -> None:
        self._told.append(("confirmed", *payloads(run_of(new))))
        super().confirmed(new)


class AppendWorld:
    """One appender, and everything that was told, in order: answers, stored runs, new ledgers, refusals."""

    def __init__(self, limits: RolloverLimits = ENDLESS, *, goes_on: bool = True) -> None:
        self.told: list[Any] = []
        self.shared = FakeLedgers(step_s=1.0)
        self.store = PartStore(self.shared)
        self.sequence = LedgerSequence()
        metadata = LogMetadata(MemoryStore(FakeClock()), "t/n/persistent/x", NO_NODE, self.sequence)
        self.metadata, self._goes_on = metadata, goes_on
        loop = asyncio.get_running_loop()
        self.appender = Appender(
            metadata,
            self.store,
            LedgerCreation(metadata, self.store, LedgerDeletion(metadata, self.store)),
            limits,
            FakeClock(),
            AppendListeners(
                NotedListeners(self.told),
                lambda: self.told.append("new ledger"),
                self._refused,
                lambda run: self.told.append(("stored", *payloads(run))),
            ),
            LedgerMeters(SharedMeters(), loop.time()),
        )

    def _refused(self) -> bool:
        self.told.append("refused")
        return self._goes_on

    def append(self, *texts: bytes) -> "asyncio.Future[EntryRun]":
        """A run of these payloads; its answer is told under the first of them."""
        future = self.appender.append(batch(*texts))
        listen(future, lambda done: self._tell(texts[0], done))
        return future

    def part(self, *texts: bytes) -> bool:
        """The same as a part. False: it was not taken, and is not appended."""
        part = Part(batch(*texts), 0, len(texts), NOT_TAKEN, self, asyncio.get_running_loop().time())
        return self.appender.take_part(part)

    def part_stored(self, part: Part) -> None:
        self.told.append((bytes(part.run().payload(part.first_entry_id)), part.ledger_id, part.first_entry_id))

    def part_failed(self, part: Part, error: BaseException) -> None:
        assert error is not None
        self.told.append((payloads(part.run())[0], type(error)))

    def _tell(self, text: bytes, done: "asyncio.Future[EntryRun]") -> None:
        error = done.exception()
        self.told.append((text, type(error)) if error else (text, done.result().ledger_id, done.result().first_entry_id))

    @property
    def answers(self) -> list[Any]:
        """Answers alone, in order."""
        return [each for each in self.told if isinstance(each, tuple) and isinstance(each[0], bytes)]

    def content(self, ledger_id: int) -> list[bytes]:
        return [text for run in self.ledger(ledger_id).runs for text in payloads(run)]

    def content_or_nothing(self) -> list[bytes]:
        """Entries of the first ledger; none when there is no ledger."""
        return self.content(1) if 1 in self.shared.ledgers else []

    def open_ledger(self) -> int | None:
        return self.sequence.open_ledger_id

    def ledger(self, ledger_id: int) -> FakeLedger:
        return self.shared.ledgers[ledger_id]
