"""A bookie as it is read best: by its files where it hands them over, for all else over its port."""

import logging

from google.protobuf.message import DecodeError

from ...decode.octets import Places
from ..connection import Lost
from .bookie_answers import Answers, merged
from .bookie_connection import BookieConnection
from .local_files import LocalFiles, offered, request

_log = logging.getLogger(__name__)


class NearbyBookie:
    """Bookie with the interface of BookieConnection: `ask`, then `answers`, and `close`. Lost when the port fails too."""

    def __init__(self, address: str, timeout_seconds: float) -> None:
        self.identity = address
        self._connection = BookieConnection(address, timeout_seconds)
        self._files: LocalFiles | None = None
        self._ledger_id = 0
        try:
            offer = offered(self._connection.question(request()))
        except (Lost, DecodeError) as error:  # later answers on this connection are unknown
            _log.info("bookie %s does not say whether it hands over files: %s", address, error)
            self._connection.close()
            self._connection, offer = BookieConnection(address, timeout_seconds), None
        if offer is not None:
            try:
                self._files = LocalFiles(offer, address, timeout_seconds)
            except Lost as error:
                _log.debug("%s; its port is used", error)  # always so from another machine

    def ask(self, ledger_id: int, entry_ids: Places) -> None:
        self._ledger_id = ledger_id
        if self._files is None:
            self._connection.ask(ledger_id, entry_ids)
            return
        try:
            self._files.ask(ledger_id, entry_ids)
        except Lost as error:
            self._leave_files(error)
            self._connection.ask(ledger_id, entry_ids)

    def answers(self, entry_ids: Places, bytes_expected: int, bytes_max: int) -> Answers:
        """See `BookieConnection.answers`."""
        if self._files is None:
            return self._connection.answers(entry_ids, bytes_expected, bytes_max)
        try:
            found = self._files.answers(entry_ids, bytes_max)
        except Lost as error:
            self._leave_files(error)
            return self._over_its_port(entry_ids, bytes_expected, bytes_max)
        if bool(found.is_there.all()):
            return found
        others = entry_ids[~found.is_there]
        return merged(found, self._over_its_port(others, bytes_expected * len(others) // len(entry_ids), bytes_max))

    def _over_its_port(self, entry_ids: Places, bytes_expected: int, bytes_max: int) -> Answers:
        self._connection.ask(self._ledger_id, entry_ids)
        return self._connection.answers(entry_ids, bytes_expected, bytes_max)

    def _leave_files(self, error: Lost) -> None:
        _log.info("%s; its port is used instead", error)
        assert self._files is not None
        self._files.close()
        self._files = None

    def close(self) -> None:
        self._connection.close()
        if self._files is not None:
            self._files.close()
