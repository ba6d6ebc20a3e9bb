"""Publishes: what was sent, what the server said it stored, and where each message is. Pure.

Checked here: receipts come in the order of sending; ids of a producer grow in the order of sending; a place holds one message
and a message its bytes, for every reader at every time.
"""

from collections import deque

from simulation.checks.history import Acknowledged, Message, MessageId, MessageKey, ProducerOpened, Refused, Sent, Violation
from wire.position import Position

NOWHERE = Position(-1, -1)
"""Place in the receipt of a repeated message, where deduplication is on."""


class Publishes:
    """Publishes to one topic."""

    def __init__(self) -> None:
        self.acknowledged: dict[MessageId, MessageKey] = {}
        self.first_sent: dict[MessageKey, float] = {}
        self.places: dict[MessageId, MessageKey] = {}
        """Messages by id, from receipts and readers."""
        self.repeated: set[MessageKey] = set()
        """Messages whose receipt said that they were stored before, where deduplication is on."""
        self._sent: dict[MessageKey, Message] = {}
        self._sessions: dict[MessageKey, int] = {}
        """Sessions that sent each message first."""
        self._producers: dict[int, str] = {}
        self._pending: dict[int, deque[Sent]] = {}
        self._last: dict[str, tuple[int, Position]] = {}

    def on_opened(self, event: ProducerOpened) -> None:
        for session, producer in self._producers.items():
            if producer == event.producer:
                self._pending.pop(session, None)
        self._producers[event.session] = event.producer
        self._pending[event.session] = deque()

    def on_sent(self, event: Sent) -> None:
        self._pending[event.session].append(event)
        for message in event.messages:
            self._sent[message.id] = message
            self.first_sent.setdefault(message.id, event.at)
            self._sessions.setdefault(message.id, event.session)

    def on_acknowledged(self, event: Acknowledged) -> None:
        entry = self._take_head(event.session, event.sequence, "receipt")
        producer = self._producers[event.session]
        if event.position == NOWHERE:
            self._repeat(event.session, entry)
            return
        sequence, position = self._last.get(producer, (-1, Position(-1, -1)))
        if event.sequence <= sequence or event.position <= position:
            raise Violation(f"ids of {producer} do not grow: {sequence} is at {position}, {event.sequence} at {event.position}")
        self._last[producer] = (event.sequence, event.position)
        for message in entry.messages:
            where = MessageId(*event.position, message.batch_index)
            self._place(where, message.id)
            self.acknowledged[where] = message.id

    def _repeat(self, session: int, entry: Sent) -> None:
        for message in entry.messages:
            if self._sessions[message.id] == session:
                raise Violation(f"{message.id} was called a repeat, and was sent for the first time")
            self.repeated.add(message.id)

    def on_refused(self, event: Refused) -> None:
        self._take_head(event.session, event.sequence, "send error")

    def pending_count(self) -> int:
        """Entries sent and not answered: after healing there must be none."""
        return sum(map(len, self._pending.values()))

    def _take_head(self, session: int, sequence: int, what: str) -> Sent:
        pending = self._pending[session]
        if not pending or pending[0].messages[0].id.sequence != sequence:
            expected = pending[0].messages[0].id.sequence if pending else "none"
            raise Violation(f"{what} out of order for {self._producers[session]}: {sequence}, expected {expected}")
        return pending.popleft()

    def partition_key(self, key: MessageKey) -> str:
        return self._sent[key].key

    def observe(self, where: MessageId, message: Message) -> None:
        """A reader got `message` from that place."""
        sent = self._sent.get(message.id)
        if sent is None:
            raise Violation(f"{_text(where)} holds {message.id}, which nobody sent")
        if sent.payload != message.payload or sent.key != message.key or sent.batch_index != message.batch_index:
            raise Violation(f"{_text(where)}: the bytes of {message.id} are not those that were sent")
        self._place(where, message.id)

    def _place(self, where: MessageId, key: MessageKey) -> None:
        known = self.places.setdefault(where, key)
        if known != key:
            raise Violation(f"{_text(where)} holds {known} and {key}")


def _text(where: MessageId) -> str:
    return ":".join(map(str, where))
