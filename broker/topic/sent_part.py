"""SentPart: the messages of one producer in one read, on their way to the log and back."""

from bookkeeper.write.parts import NOT_TAKEN, Part
from managed_ledger.contract import PartSource
from wire.run import SendMix, SendRun


class SentPart(Part):
    """Part `place` of `sends`. Its source is the producer."""

    __slots__ = ()

    sends: SendMix

    def __init__(self, sends: SendMix, place: int, source: PartSource, began: float) -> None:
        starts = sends.starts
        start = starts[place]
        super().__init__(sends, start, starts[place + 1] - start, NOT_TAKEN, source, began)
        self.sends = sends
        self.place = place

    def send_run(self) -> SendRun:
        """A copy, for the code that answers runs."""
        return self.sends.run(self.place)


def new_part() -> SentPart:
    """A part without its fields: `turns.take_parts` fills them."""
    return SentPart.__new__(SentPart)
