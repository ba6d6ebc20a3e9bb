"""One producer on one topic (a partition by itself), in one task: sends, counts pending entries, and survives brokers.

After a lost connection the broker tells the last stored sequence id, which settles pending entries if the topic deduplicates;
else the guarantee decides: they are sent again, or the task ends (`Interrupted`). One producer has a name at a time: another
attempt of the same task is waited for, and one that took the name over ends this one (`TakenOver`).
"""

import logging
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandCloseProducer, CommandProducer, CommandSend, Schema, ServerError

from ..client.brokers import connection_to, tried_again
from ..client.connection import Connection, Lost, NameTaken, raise_refusal
from ..errors import Refused, Unreachable
from ..options import Access
from .entries import Entry, Limits, Stamp, entries_of
from .errors import Interrupted, TakenOver, TooLarge
from .messages import OutgoingRows
from .topics import deduplicates

_log = logging.getLogger(__name__)
_PRODUCER_ID = 1
_PENDING_ENTRIES_MAX = 1000
"""Receipts of that many fit into a socket's buffer: a broker never waits for us to read while we wait for it."""
_NOTHING_STORED = -1
_PAUSE_SECONDS, _NAME_PAUSE_SECONDS = 0.1, 0.5
_LASTING = {
    *(ServerError.NotAllowedError, ServerError.TopicTerminatedError, ServerError.AuthorizationError, ServerError.TopicNotFound),
    *(ServerError.TransactionConflict, ServerError.TransactionNotFound, ServerError.InvalidTxnStatus),
    *(ServerError.IncompatibleSchema, ServerError.UnsupportedVersionError),
}


@dataclass(frozen=True, slots=True)
class Producing:
    """Settings of a producer. `name` "": the broker gives one. `sends_again`: even though an entry may be stored twice by that.

    `name_seconds`: how long another producer of the name is waited for at the beginning, where that is more than the access's.
    """

    name: str
    stamp: Stamp
    schema: Schema | None
    limits: Limits
    pending_bytes_max: int
    sends_again: bool
    name_seconds: float = 0.0


class _Taken(Exception):
    """NameTaken; unlike for a broker that is away, nothing waits for it."""


class Publisher:
    """`close` at the end, also of a failure. Every method: Refused, Unreachable, Interrupted, TakenOver, naming the topic."""

    def __init__(self, topic: str, access: Access, producing: Producing) -> None:
        self.topic, self._access, self._producing = topic, access, producing
        self._pending: deque[Entry] = deque()
        self._pending_bytes, self._entry_bytes_max = 0, 0
        self._name, self._stamp = producing.name, producing.stamp
        self.last_stored = _NOTHING_STORED
        """The last sequence id that the broker knew when this began; -1 where it knows none."""
        self._has_receipts = False
        self._last_settled = _NOTHING_STORED
        self._connection = self._having_name(max(producing.name_seconds, access.timeout_seconds))

    # ---- Sending

    def send(self, rows: OutgoingRows) -> None:
        """Sends rows in order. Returns when they are on their way, and waits where too many are."""
        for entry in entries_of(rows, self._producing.limits, self._stamp, time.time_ns() // 1_000_000):
            if len(entry.section) > self._entry_bytes_max:
                raise TooLarge(self.topic, len(entry.section), self._entry_bytes_max, entry.first)
            self._send(entry)

    def send_new(self, rows: OutgoingRows) -> int:
        """Sends rows after `last_stored`, which the broker knew at the beginning; returns the number of the others."""
        new = rows
        if self.last_stored >= int(rows.sequence_ids[0]):
            new = rows.take(numpy.flatnonzero(rows.sequence_ids > numpy.uint64(self.last_stored)))
        if new.count:
            self.send(new)
        return rows.count - new.count

    def _send(self, entry: Entry) -> None:
        self.heed()
        while self._is_full():
            self._settle_one()
        self._pending.append(entry)
        self._pending_bytes += len(entry.section)
        try:
            self._put(self._connection, entry)
        except Lost as error:
            self._come_back(error)

    def _is_full(self) -> bool:
        return self._pending_bytes > self._producing.pending_bytes_max or len(self._pending) >= _PENDING_ENTRIES_MAX

    def heed(self) -> None:
        """Takes the commands that have come, and waits for no other. A ping that is not answered loses the name to another
        attempt that waits for it."""
        try:
            while (found := self._connection.command_here()) is not None:
                self._take(found)
        except Lost as error:
            self._come_back(error)

    def flush(self) -> None:
        """Waits until every entry is stored."""
        while self._pending:
            self._settle_one()

    def close(self) -> None:
        """Closes the producer; pending entries stay pending."""
        try:
            asked = CommandCloseProducer(producer_id=_PRODUCER_ID, request_id=self._connection.request_id())
            # the name is free for the next task when the answer is here; without one it is free when the connection's end is
            # seen
            if not self._pending:
                self._connection.ask(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=asked), BaseCommand.SUCCESS)
        except (Lost, Refused):
            return  # the connection goes anyway, and the producer with it
        finally:
            self._connection.close()

    def _put(self, connection: Connection, entry: Entry) -> None:
        send = CommandSend(
            producer_id=_PRODUCER_ID, sequence_id=entry.first, num_messages=entry.count, highest_sequence_id=entry.last
        )
        if self._stamp.txn_id is not None:
            send.txnid_most_bits, send.txnid_least_bits = self._stamp.txn_id.most, self._stamp.txn_id.least
        connection.send(BaseCommand(type=BaseCommand.SEND, send=send), entry.section)

    # ---- Receipts

    def _settle_one(self) -> None:
        """Waits for the next receipt."""
        try:
            self._take(self._connection.command())
        except Lost as error:
            self._come_back(error)

    def _take(self, command: BaseCommand) -> None:
        if command.type == BaseCommand.SEND_RECEIPT:
            if self._pending and command.send_receipt.sequence_id == self._pending[0].first:
                self._settled()
        elif command.type == BaseCommand.SEND_ERROR:
            raise self._failure(command.send_error.error, command.send_error.message)
        elif command.type == BaseCommand.CLOSE_PRODUCER:
            raise Lost(f"{self._connection.url} closed the producer")
        else:
            raise_refusal(f"{self.topic}: {self._connection.url}", command)

    def _settled(self) -> None:
        settled = self._pending.popleft()
        self._pending_bytes -= len(settled.section)
        self._has_receipts, self._last_settled = True, settled.last

    def _failure(self, error: Any, message: str) -> Exception:
        said = f"{self.topic}: {ServerError.Name(error)}: {message}"
        return Refused(said) if error in _LASTING else Lost(said)

    # ---- Brokers that go away

    def _come_back(self, error: Lost) -> None:
        """Connects anew, and sends what is not stored. Unreachable when nothing moves for the time that is allowed."""
        until = time.monotonic() + self._access.timeout_seconds
        while True:
            self._connection.close()
            if time.monotonic() > until:
                raise Unreachable(f"{self.topic}: {error}; tried again for {self._access.timeout_seconds:g} s") from None
            self._connection = self._having_name(self._access.timeout_seconds)
            self._check_own()
            self._drop_stored(error)
            try:
                for entry in self._pending:
                    self._put(self._connection, entry)
                if self._pending:  # one receipt shows that this broker takes them
                    self._take(self._connection.command())
            except Lost as again:
                error = again
                time.sleep(_PAUSE_SECONDS)
                continue
            return

    def _having_name(self, seconds: float) -> Connection:
        """Connection, after a wait for the producer that has the name: it stores what this one would send again. TakenOver."""
        until, is_told = time.monotonic() + seconds, False
        while True:
            try:
                return tried_again(self.topic, self._access, self._connected_or_taken)
            except _Taken as error:
                if time.monotonic() > until:
                    raise self._taken_over(f"{error}; waited for {seconds:g} s") from None
                if not is_told:
                    _log.info("%s: another attempt of this task is writing, and is waited for: %s", self.topic, error)
                is_told = True
            time.sleep(_NAME_PAUSE_SECONDS)

    def _connected_or_taken(self) -> Connection:
        try:
            return self._connected()
        except NameTaken as error:
            raise _Taken(str(error)) from None

    def _check_own(self) -> None:
        """Whether what the broker has last is ours. Others cut the rows elsewhere: of a batch that is there in part a broker
        drops the rest too, and it would be lost."""
        known = {self._last_settled, self.last_stored, *(each.last for each in self._pending)}
        if self._told > max(self._last_settled, self.last_stored) and self._told not in known:
            raise self._taken_over(f"its broker has what this attempt did not send, up to sequence id {self._told}")

    def _taken_over(self, why: str) -> TakenOver:
        return TakenOver(
            f"{self.topic}: another attempt of this task writes as producer {self._name} (speculation, or an executor that was "
            f"thought to be lost), and this one ends; nothing is lost or twice by that. {why}"
        )

    def _drop_stored(self, error: Lost) -> None:
        is_told = self._told != _NOTHING_STORED
        while is_told and self._pending and self._pending[0].last <= self._told:
            self._settled()
        if self._pending and not is_told and not self._producing.sends_again and not deduplicates(self.topic, self._access):
            raise Interrupted(
                f"{self.topic}: {error}. {len(self._pending)} batches were on their way and may be stored or not; "
                "sent again in the "
                "same transaction they could be there twice, so the task ends here and its transaction is aborted. "
                "Where the topic "
                "deduplicates (pulsar-admin topics set-deduplication -e TOPIC) a task goes on instead"
            )

    def _connected(self) -> Connection:
        connection = connection_to(self.topic, self._access)
        try:
            self._produce(connection)
        except Refused as error:
            connection.close()
            raise Refused(f"{self.topic}: {error}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _produce(self, connection: Connection) -> None:
        asked = CommandProducer(topic=self.topic, producer_id=_PRODUCER_ID, request_id=connection.request_id())
        asked.txn_enabled = self._stamp.txn_id is not None
        asked.user_provided_producer_name = bool(self._producing.name)
        if self._name:
            asked.producer_name = self._name
        if self._producing.schema is not None:
            asked.schema.CopyFrom(self._producing.schema)
        command = BaseCommand(type=BaseCommand.PRODUCER, producer=asked)
        found = connection.ask(command, BaseCommand.PRODUCER_SUCCESS).producer_success
        self._told = found.last_sequence_id
        if not self._name:
            self._name = found.producer_name
        if not self._has_receipts and not self._pending:
            self.last_stored = found.last_sequence_id
        version = found.schema_version if self._producing.schema is not None else None
        self._stamp = replace(self._stamp, producer_name=self._name, schema_version=version)
        self._entry_bytes_max = connection.message_bytes_max
