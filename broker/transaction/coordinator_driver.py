"""One transaction coordinator: performs its machine's decisions, and answers when they are durable.

Owns the log, the tasks that end transactions, and the timer of those that are due. The coordinator ends when its log fails:
decisions that were not stored are forgotten, and the next load begins from the log.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from managed_ledger.contract import ManagedLedgers
from ports.clock import Clock
from ports.logs import line
from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from .ending_driver import Ending, Endings
from .log_driver import TransactionLog
from .machine import Transaction, TransactionMachine
from .meters import CoordinatorMeters
from .records import Participant, Record, StatusChanged, TxnStatus, TxnSubscription

log = logging.getLogger(__name__)

LOOK_SECONDS_MAX = 3600.0
ANSWER_SECONDS_MAX = 20.0
"""Time limit of the answer to a request for an end. Apache's clients wait for 30 s (operationTimeout)."""
TIMEOUT_MS_MAX = 1 << 62
"""A client's number has 64 bits without a sign, of which a file with a sign keeps 63."""


class Coordinator:
    """Loaded. Requests fail with TRANSACTION_COORDINATOR_NOT_FOUND when it has ended, for which clients look it up again."""

    def __init__(self, machine: TransactionMachine, stored: TransactionLog, endings: Endings, clock: Clock) -> None:
        self.id = machine.coordinator_id
        self.machine, self.log = machine, stored
        self.meters = CoordinatorMeters()
        self.recover_start_ms = self.recover_end_ms = 0
        self._endings, self._clock = endings, clock
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """Tasks that end transactions, by number of the transaction."""
        self._endings_of: dict[int, Ending] = {}
        """Progress of these tasks, by the same numbers."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        """Time at which `_timer` is due; uvloop's timers that are due at once do not say it."""
        self._due_task: asyncio.Task[None] | None = None
        self.has_ended = False
        self._unlisten = stored.ledger.on_fenced(lambda: self._fail("another broker has its log"))

    @classmethod
    async def load(
        cls, coordinator_id: int, ledgers: ManagedLedgers, endings: Endings, clock: Clock, active_max: int
    ) -> "Coordinator":
        """Returns the coordinator in its log. Decided transactions are ended, and timers of open ones go on.
        BrokerError(PERSISTENCE)."""
        started_ms = clock.now_ms()
        stored = await TransactionLog.open(ledgers, coordinator_id, clock)
        machine = TransactionMachine(coordinator_id, active_max)
        try:
            machine.last_sequence = max(await stored.replay(machine.replay), machine.last_sequence)
        except BaseException:
            await stored.close(-1)
            raise
        found = cls(machine, stored, endings, clock)
        found.recover_start_ms, found.recover_end_ms = started_ms, clock.now_ms()
        found._go_on()
        return found

    def _go_on(self) -> None:
        for transaction in list(self.machine.active()):
            if transaction.status is not TxnStatus.OPEN:
                self._begin_ending(transaction)
        self._plan()
        log.info(
            line(
                "transaction coordinator is loaded",
                coordinator=self.id,
                active=self.machine.active_count,
                last=self.machine.last_sequence,
            )
        )

    # ---- Requests

    async def open(self, owner: str | None, timeout_ms: int) -> TxnId:
        """TOO_MANY_REQUESTS."""
        self._check()
        while not self.log.is_reserved(self.machine.last_sequence + 1):
            await self._stored(self.log.reserve(self.machine.last_sequence + 1))
        record = self.machine.open(owner, min(timeout_ms, TIMEOUT_MS_MAX), self._clock.now_ms())
        await self._append(record)
        self.meters.created += 1
        self._plan()
        return TxnId(self.id, record.least)

    async def add_partitions(self, least: int, partitions: Sequence[str]) -> None:
        """TRANSACTION_NOT_FOUND, INVALID_TXN_STATUS, NOT_ALLOWED; so are the others."""
        self._check()
        await self._append(self.machine.add_partitions(least, partitions))

    async def add_subscriptions(self, least: int, subscriptions: Sequence[TxnSubscription]) -> None:
        self._check()
        await self._append(self.machine.add_subscriptions(least, subscriptions))

    async def end(self, least: int, action: TxnAction) -> None:
        """Ends a transaction, at all participants when it returns. The decision is durable before any participant is asked.
        SERVICE_NOT_READY: some have not answered by ANSWER_SECONDS_MAX. They are asked on, and a repeated request for the end
        waits again. TRANSACTION_CONFLICT: another client had ended it the other way at some participants; all others have done
        it.
        """
        self._check()
        await self._append(self.machine.end(least, action))
        if self.machine.is_ending(least) and least not in self._tasks:
            self._begin_ending(self.machine.get(least))
        task = self._tasks.get(least)
        if task is not None:
            ending = self._endings_of[least]
            await asyncio.wait([task], timeout=ANSWER_SECONDS_MAX)
            self._check()
            if not task.done():
                raise ending.not_done()
            self.machine.require_whole(least)

    def owner(self, least: int) -> str | None:
        """TRANSACTION_NOT_FOUND."""
        self._check()
        return self.machine.owner(least)

    def slow(self, timeout_ms: int) -> list[Transaction]:
        """Active transactions with a longer time-out (MLTransactionMetadataStore.getSlowTransactions)."""
        return [each for each in self.machine.active() if each.timeout_ms > timeout_ms]

    # ---- Ending

    def _begin_ending(self, transaction: Transaction) -> None:
        least, action = transaction.least, transaction.status.action
        assert action is not None
        participants: list[Participant] = [*sorted(transaction.subscriptions)]  # acknowledgements first, as Apache
        participants += sorted(transaction.partitions)
        ending = Ending(TxnId(self.id, least), action, participants, lambda: self.machine.low_water_mark)
        self._endings_of[least] = ending
        self._tasks[least] = task = self._loop.create_task(self._end(transaction, ending), name=f"end of transaction {least}")
        task.add_done_callback(lambda done: self._ending_done(least, done))

    async def _end(self, transaction: Transaction, ending: Ending) -> None:
        await self._endings.end(ending)
        await self._append(self.machine.finish(transaction.least, ending.against))
        self.log.let_go(self.machine.ended(transaction.least))
        open_ms = self._clock.now_ms() - transaction.start_ms
        self.meters.ended(max(0, open_ms), is_committed=ending.action is TxnAction.COMMIT)

    def _ending_done(self, least: int, done: "asyncio.Task[None]") -> None:
        del self._tasks[least], self._endings_of[least]
        failure = None if done.cancelled() else done.exception()
        if failure is not None and not isinstance(failure, BrokerError):
            log.error(line("ending a transaction failed", coordinator=self.id, number=least), exc_info=failure)
            self._fail("a transaction could not be ended")

    # ---- Time

    def _plan(self) -> None:
        """Be called when the next one is due, or, when that is far off, to look again."""
        at_ms = self.machine.next_due_ms()
        if at_ms is None or self.has_ended or self._due_task is not None:
            return
        at = self._loop.time() + min(max(0, at_ms - self._clock.now_ms()) / 1000, LOOK_SECONDS_MAX)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._look_for_due)

    def _look_for_due(self) -> None:
        self._timer = None
        self._due_task = self._loop.create_task(self._abort_due(), name=f"transactions that are due, of coordinator {self.id}")
        self._due_task.add_done_callback(self._due_done)

    async def _abort_due(self) -> None:
        found: list[StatusChanged] = []
        for least in self.machine.due(self._clock.now_ms()):
            record = self.machine.end(least, TxnAction.ABORT)
            assert record is not None
            found.append(record)
        await asyncio.gather(*(self._abort(record) for record in found))

    async def _abort(self, record: StatusChanged) -> None:
        await self._append(record)
        self.meters.timed_out += 1
        if self.machine.is_ending(record.least) and record.least not in self._tasks:
            self._begin_ending(self.machine.get(record.least))

    def _due_done(self, done: "asyncio.Task[None]") -> None:
        self._due_task = None
        failure = None if done.cancelled() else done.exception()
        if failure is not None and not isinstance(failure, BrokerError):
            log.error(line("looking for due transactions failed", coordinator=self.id), exc_info=failure)
            self._fail("transactions that are due could not be found")
        self._plan()

    # ---- The log

    async def _append(self, record: Record | None) -> None:
        """None: an earlier decision is enough; it may be on its way still."""
        if record is None:
            await self._stored(self.log.all_stored())
            return
        told = partial(self.machine.stored, record)
        await self._stored(self.log.append(record, self.machine.last_sequence, told))
        self.meters.appended += 1

    async def _stored(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BrokerError as error:
            self._fail(error.message)
            raise self.not_found() from error
        self._check()

    # ---- The end

    def not_found(self) -> BrokerError:
        text = f"Transaction coordinator with id {self.id} not found!"
        return BrokerError(ServerError.TRANSACTION_COORDINATOR_NOT_FOUND, text)

    def _check(self) -> None:
        if self.has_ended:
            raise self.not_found()

    def _fail(self, reason: str) -> None:
        """Ends the coordinator after a failed write: its memory may differ from its log."""
        if not self.has_ended:
            log.warning(line("transaction coordinator has ended", coordinator=self.id, reason=reason))
        self._stop()

    def _stop(self) -> None:
        self.has_ended = True
        self._unlisten()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._running():
            if task is not asyncio.current_task():
                task.cancel()

    def _running(self) -> list["asyncio.Task[None]"]:
        return [*self._tasks.values(), *([] if self._due_task is None else [self._due_task])]

    async def close(self) -> None:
        """Closes the coordinator: appended records are stored, and endings go on when it is loaded again. Closing twice is
        fine."""
        is_sound = not self.has_ended
        self._stop()
        if running := self._running():
            await asyncio.wait(running)
        await self.log.close(self.machine.last_sequence if is_sound else -1)
