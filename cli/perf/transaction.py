"""`pulsar-perf transaction`: transactions one after the other in each of some threads, each of which receives, acknowledges and
publishes so many messages; the same without transactions with --txn-disable (Apache: PerformanceTransaction).
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from cli.client.connection import ClientError
from cli.client.consume import POSITIONS, TYPES
from cli.client.topic import partitions_of
from cli.client.transactions import Coordinator
from cli.client_configuration import ClientConfiguration
from cli.perf.transaction_members import SendingMember, TakingMember
from cli.perf.transaction_progress import TransactionProgress
from wire.generated.pulsar_api_pb2 import CommandSubscribe
from wire.transactions import TxnAction

LOOK_SECONDS = 0.1


def transaction(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> None:
    """Until as many have ended as asked for, or the time is over. ClientError of the first thread that has one."""
    progress = TransactionProgress(write, values["json"], values["stats-interval-seconds"], not values["txn-disable"])
    run = _Run(configuration, values, progress)
    threads = [
        threading.Thread(target=run.work, args=(turn,), name=f"transactions-{turn}", daemon=True)
        for turn in range(max(1, values["num-test-threads"]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            progress.tick()
    if run.failures:
        raise run.failures[0]
    progress.finish()


class _Run:
    """What the threads share."""

    def __init__(self, configuration: ClientConfiguration, values: Mapping[str, Any], progress: TransactionProgress) -> None:
        self._configuration, self._values, self._progress = configuration, values, progress
        self._sends, self._takes = values["numMessage-perTransaction-produce"], values["numMessage-perTransaction-consume"]
        self._begun = time.monotonic()
        self._lock, self._count = threading.Lock(), 0
        self.failures: list[ClientError] = []

    def work(self, turn: int) -> None:
        """Of one thread."""
        try:
            with ExitStack() as held:
                senders = [held.enter_context(closing(each)) for each in self._senders()]
                takers = [held.enter_context(closing(each)) for each in self._takers()]
                coordinator = None
                if not self._values["txn-disable"]:
                    coordinator = held.enter_context(closing(Coordinator(self._configuration, turn)))
                while self._may_begin():
                    self._one(coordinator, senders, takers)
        except ClientError as error:
            self.failures.append(error)

    def _senders(self) -> list[SendingMember]:
        topics = [partitions_of(topic, self._configuration)[0] for topic in self._values["topics-p"]]
        return [SendingMember(topic, self._configuration) for topic in topics]

    def _takers(self) -> list[TakingMember]:
        values = self._values
        topics = [partitions_of(topic, self._configuration)[0] for topic in values["topics-c"]]
        return [
            TakingMember(self._about(name), topic, values["receiver-queue-size"], self._configuration)
            for topic in topics
            for name in values["subscriptions"] or ["sub"]
        ]

    def _about(self, subscription: str) -> CommandSubscribe:
        kind, position = TYPES[self._values["subscription-type"]], POSITIONS[self._values["subscription-position"]]
        return CommandSubscribe(subscription=subscription, sub_type=kind, initial_position=position)  # type: ignore[arg-type]

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
        seconds = self._values["test-duration"]
        return bool(seconds) and time.monotonic() - self._begun >= seconds

    def _one(self, coordinator: Coordinator | None, senders: list[SendingMember], takers: list[TakingMember]) -> None:
        """A transaction that finds nothing to receive before the time is over is aborted, and not counted."""
        txn = None if coordinator is None else coordinator.open(self._values["txn-timeout"] * 1000)
        if coordinator is not None and txn is not None:
            if self._takes:
                coordinator.add_subscriptions(txn, [each.place for each in takers])
            if self._sends:
                coordinator.add_topics(txn, [each.topic for each in senders])
        is_whole = all(each.take(txn, self._takes, self._is_over, self._progress.acked) >= self._takes for each in takers)
        if is_whole:
            for each in senders:
                each.send(txn, self._sends, self._progress.sent)
        if coordinator is not None and txn is not None:
            coordinator.end(txn, TxnAction.COMMIT if is_whole and not self._values["abort"] else TxnAction.ABORT)
        if is_whole:
            self._progress.ended()
