"""Redelivery: messages that are to be delivered again, since the client refused them or did not answer in time. Pure."""

from collections import OrderedDict

REFUSED_MAX = 50_000
"""Refused entries that wait for their time; beyond them the oldest is delivered again at once."""
Entry = tuple[int, int, int]
"""Place, ledger and entry."""


class Redelivery:
    """Both waits of one session. `ack_timeout_seconds` 0: a client may take its time."""

    def __init__(self, ack_timeout_seconds: float, nack_delay_seconds: float) -> None:
        self._ack_timeout, self._nack_delay = ack_timeout_seconds, nack_delay_seconds
        self._open: OrderedDict[str, float] = OrderedDict()
        self._refused: OrderedDict[Entry, float] = OrderedDict()

    def delivered(self, text: str, now: float) -> None:
        if self._ack_timeout:
            self._open[text] = now + self._ack_timeout
            self._open.move_to_end(text)

    def settled(self, text: str) -> None:
        self._open.pop(text, None)

    def refused(self, entry: Entry, now: float) -> None:
        """The client refused a message: the delay of an entry counts from the first refusal."""
        self._refused.setdefault(entry, now + self._nack_delay)

    def due(self) -> float | None:
        if len(self._refused) > REFUSED_MAX:
            return 0.0
        moments = [next(iter(each.values())) for each in (self._open, self._refused) if each]
        return min(moments, default=None)

    def refusals_due(self, now: float) -> list[Entry]:
        due = []
        while self._refused and (len(self._refused) > REFUSED_MAX or next(iter(self._refused.values())) <= now):
            due.append(self._refused.popitem(last=False)[0])
        return due

    def unanswered(self, now: float) -> list[str]:
        """Messages whose time is over."""
        due = []
        while self._open and next(iter(self._open.values())) <= now:
            due.append(self._open.popitem(last=False)[0])
        return due
