"""`pulsar-perf transaction`: transactions one after the other in each of some threads, each of which receives, acknowledges and
publishes so many messages; the same without transactions with --txn-disable (Apache: PerformanceTransaction).

A connection that breaks costs the transaction that is open: it is aborted, not counted, and the next begins on new connections.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from cli.client.errors import ClientError, OwnerAway, RefusedByBroker, is_passing
from cli.client.lasting import START_SECONDS_MAX, Notices, Pauses
from cli.client.topic import partitions_of
from cli.client.transactions import Coordinator
from cli.client_configuration import ClientConfiguration
from cli.perf.consume import subscribe_about, subscription_names
from cli.perf.transaction_members import SendingMember, TakingMember
from cli.perf.transaction_progress import TransactionProgress
from wire.generated.pulsar_api_pb2 import ServerError
from wire.transactions import TxnAction, TxnId

LOOK_SECONDS = 0.1
_ENDED_OTHERWISE = frozenset({ServerError.TransactionConflict, ServerError.TransactionNotFound, ServerError.InvalidTxnStatus})
"""Refusals because of what became of a transaction while its coordinator was away: the next one may pass."""


def transaction(
    configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None], notices: Notices
) -> None:
    """Runs until enough transactions have ended, the time is over, or it is interrupted: it tells the figures in any case.
    ClientError of the first thread that has one.
    """
    progress = TransactionProgress(write, values["json"], values["stats-interval-seconds"], not values["txn-disable"])
    run = _Run(configuration, values, progress, notices)
    threads = [
        threading.Thread(target=run.work, args=(turn,), name=f"transactions-{turn}", daemon=True)
        for turn in range(max(1, values["num-test-threads"]))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK_SECONDS)
                progress.tick()
    finally:
        progress.reconnected = notices.lost_count
        if progress.count or not run.failures:
            progress.finish()
    if run.failures:
        raise run.failures[0]


class _Round:
    """The connections of one thread, which are there until one of them breaks; `open`: the transaction that is not ended."""

    def __init__(self, held: ExitStack) -> None:
        self.held = held
        self.coordinator: Coordinator | None = None
        self.senders: list[SendingMember] = []
        self.takers: list[TakingMember] = []
        self.open: TxnId | None = None


class _Run:
    """State that the threads share."""

    def __init__(
        self,
        configuration: ClientConfiguration,
        values: Mapping[str, Any],
        progress: TransactionProgress,
        notices: Notices,
    ) -> None:
        self._configuration, self._values, self._progress, self._notices = configuration, values, progress, notices
        self._sends, self._takes = values["numMessage-perTransaction-produce"], values["numMessage-perTransaction-consume"]
        self._begun = time.monotonic()
        self._lock, self._count = threading.Lock(), 0
        self.failures: list[ClientError] = []

    def work(self, turn: int) -> None:
        """One thread: rounds of connections, until it is over, or there is an error that will not pass."""
        left: TxnId | None = None
        pauses, was_there = Pauses(random.random), False
        try:
            while not self._is_over() and not self.failures:
                with ExitStack() as held:
                    round_ = _Round(held)
                    try:
                        self._connect(round_, turn, left)
                        if was_there:
                            self._notices.again(f"thread {turn}", 0.0)
                        left, was_there, pauses = None, True, Pauses(random.random)
                        self._transactions(round_)
                        return
                    except ClientError as error:
                        self._judge(error, turn, was_there=was_there)
                        left = round_.open or left
                time.sleep(pauses.next())
        except ClientError as error:
            self.failures.append(error)

    def _judge(self, error: ClientError, turn: int, *, was_there: bool) -> None:
        """Goes on for an error that may pass, and raises any other."""
        if isinstance(error, OwnerAway) and time.monotonic() - self._begun < START_SECONDS_MAX:
            return  # its topics are being taken over
        is_another = isinstance(error, RefusedByBroker) and error.code in _ENDED_OTHERWISE
        if not was_there or not (is_another or is_passing(error, was_there=True)):
            raise error
        self._notices.lost(f"thread {turn}", str(error))
        self._progress.lost()

    def _connect(self, round_: _Round, turn: int, left: TxnId | None) -> None:
        """`left`: a transaction of the round before, whose messages no other consumer gets until it ends."""
        held = round_.held
        if not self._values["txn-disable"]:
            round_.coordinator = held.enter_context(closing(Coordinator(self._configuration, turn)))
            if left is not None:
                self._abandon(round_.coordinator, left)
        round_.senders = [held.enter_context(closing(each)) for each in self._senders()]
        round_.takers = [held.enter_context(closing(each)) for each in self._takers()]

    def _abandon(self, coordinator: Coordinator, left: TxnId) -> None:
        try:
            coordinator.end(left, TxnAction.ABORT)
        except RefusedByBroker as error:
            if error.code not in _ENDED_OTHERWISE:  # else it has ended already
                raise

    def _transactions(self, round_: _Round) -> None:
        while self._may_begin():
            try:
                self._one(round_)
            except ClientError:
                with self._lock:
                    self._count -= 1
                raise

    def _senders(self) -> list[SendingMember]:
        topics = [partitions_of(topic, self._configuration)[0] for topic in self._values["topics-p"]]
        return [SendingMember(topic, self._configuration) for topic in topics]

    def _takers(self) -> list[TakingMember]:
        values = self._values
        topics = [partitions_of(topic, self._configuration)[0] for topic in values["topics-c"]]
        return [
            TakingMember(subscribe_about(values, name), topic, values["receiver-queue-size"], self._configuration)
            for topic in topics
            for name in subscription_names(values)
        ]

    def _may_begin(self) -> bool:
        """Waits for its turn at the rate of --txnRate; False when enough were begun, or the time is over."""
        with self._lock:
            if self._is_over() or self.failures or 0 < self._values["number-txn"] <= self._count:
                return False
            self._count += 1
            turn = self._count
        if self._values["txnRate"] > 0:
            time.sleep(max(0.0, self._begun + (turn - 1) / self._values["txnRate"] - time.monotonic()))
        return True

    def _is_over(self) -> bool:
        seconds: int = self._values["test-duration"]
        return seconds > 0 and time.monotonic() - self._begun >= seconds

    def _one(self, round_: _Round) -> None:
        """A transaction that finds nothing to receive before the time is over is aborted, and not counted."""
        coordinator = round_.coordinator
        txn = None if coordinator is None else coordinator.open(self._values["txn-timeout"] * 1000)
        round_.open = txn
        if coordinator is not None and txn is not None:
            if self._takes:
                coordinator.add_subscriptions(txn, [each.place for each in round_.takers])
            if self._sends:
                coordinator.add_topics(txn, [each.topic for each in round_.senders])
        told = self._progress
        is_whole = all(each.take(txn, self._takes, self._is_over, told.acked) >= self._takes for each in round_.takers)
        if is_whole:
            for each in round_.senders:
                each.send(txn, self._sends, told.sent)
        if coordinator is not None and txn is not None:
            coordinator.end(txn, TxnAction.COMMIT if is_whole and not self._values["abort"] else TxnAction.ABORT)
            round_.open = None
        if is_whole:
            told.ended()
