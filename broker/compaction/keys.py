"""KeyTable: the newest message of each key, without an object a key. Pure.

A key takes 24 bytes, and room beside it: at most 80 % of the slots are in use, and a table grows by half. That is 30 to 45
bytes a key, and while it grows the old table besides: 10 million keys are 300 to 450 MB, and 750 MB for that moment.
"""

from array import array

from wire.kernels.key_table import newest, note_key, rehash

_SLOTS_MIN = 1024
_SLOTS_MAX = 1 << 31


class KeyTable:
    """`slots` and `counts` are for the kernels (`wire.kernels.key_table`)."""

    def __init__(self) -> None:
        self.slots = array("Q", [0]) * (3 * _SLOTS_MIN)
        self.counts = array("Q", [0, 0, 0])

    @property
    def keys(self) -> int:
        return self.counts[1]

    @property
    def messages_gone(self) -> int:
        """Replaced, removed, or of no key, until now."""
        return self.counts[2]

    @property
    def size_bytes(self) -> int:
        return 8 * len(self.slots)

    def reserve(self, messages: int) -> None:
        """See to it that so many more keys have room. ValueError beyond 1.7 thousand million keys."""
        capacity, needed = len(self.slots) // 3, self.counts[0] + messages
        if 5 * needed <= 4 * capacity:
            return
        wanted = self.counts[1] + messages  # those that were removed do not move
        fresh = max(3 * capacity // 2 if 5 * wanted > 3 * capacity else capacity, 5 * wanted // 4 + 1)
        if fresh > _SLOTS_MAX:
            raise ValueError(f"more keys than {_SLOTS_MAX} slots have room for")
        slots = array("Q", [0]) * (3 * fresh)
        self.counts[0] = rehash(self.slots, slots)
        self.slots = slots

    def note(self, key: bytes, mark: int) -> None:
        """Notes the newest message of a key; mark 0: the key has no message any more."""
        self.reserve(1)
        note_key(self.slots, self.counts, key, mark)

    def newest(self, key: bytes) -> int:
        """Mark of the key's newest message, -1 for none."""
        return newest(self.slots, key)
