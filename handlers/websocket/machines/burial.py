"""Burials: messages on their way to the dead letter topic, as Apache's ConsumerImpl sends them there. Pure.

A message that was delivered again more than maxRedeliverCount times is not told to the client. Its entry is acknowledged
once all its messages are stored in the dead letter topic.
"""

import base64

import msgspec

from wire.errors import RemoteError
from wire.received import Message, Opened

from .effects import Bury

Entry = tuple[int, int, int]
"""Place, ledger and entry."""
REAL_TOPIC, ORIGIN_MESSAGE_ID = "REAL_TOPIC", "ORIGIN_MESSAGE_ID"
"""Properties of a dead letter (RetryMessageUtil)."""


class Burials:
    """Burials under way in one session; a broker's permits bound their number."""

    def __init__(self) -> None:
        self._number = 0
        self._entries: dict[str, Entry] = {}
        self._left: dict[Entry, int] = {}

    def begun(self, entry: Entry, topic: str, partition: int, opened: Opened) -> list[Bury]:
        """Buries all messages of an entry. One that cannot be read any further stays where it is."""
        try:
            messages = list(opened.messages)
        except RemoteError:
            return []
        self._left[entry] = len(messages)
        return [Bury(self._text(entry, topic, partition, message)) for message in messages]

    def _text(self, entry: Entry, topic: str, partition: int, message: Message) -> str:
        self._number += 1
        context = str(self._number)
        self._entries[context] = entry
        index = f":{message.batch_index}" if message.batch_index >= 0 else ""
        origin = {REAL_TOPIC: topic, ORIGIN_MESSAGE_ID: f"{entry[1]}:{entry[2]}:{partition}{index}"}
        letter = {
            "payload": base64.b64encode(message.payload).decode("ascii"),
            "properties": {**origin, **message.properties},
            "context": context,
            "key": message.key_text,
        }
        return msgspec.json.encode(letter).decode()

    def ended(self, context: str, *, is_stored: bool) -> tuple[Entry | None, bool]:
        """Entry of the message, and whether all its messages are stored. None: it was lost or failed before."""
        entry = self._entries.pop(context, None)
        if entry is None or entry not in self._left:
            return None, False
        self._left[entry] -= 1
        is_whole = not self._left[entry]
        if is_whole or not is_stored:
            del self._left[entry]
        return entry, is_whole

    def forget(self, place: int) -> None:
        """Forgets the entries of a lost consumer, which come again."""
        self._left = {entry: left for entry, left in self._left.items() if entry[0] != place}
