"""Planted bugs of the ways on which many messages go together: receipts of parts, and runs handed out as they are confirmed."""

from typing import Any

from broker.connection.receipts import Receipts


def receipts_of_parts_out_of_order(add: Any) -> Any:
    def broken(self: Receipts, part: Any, owner: Any) -> None:
        add(self, part, owner)
        if len(self.parts) > 1:
            self.parts.insert(0, self.parts.pop())
            self._owners.insert(0, self._owners.pop())

    return broken


def receipt_to_another_connection(flush: Any) -> Any:
    last: list[Receipts] = []

    def broken(self: Receipts) -> None:
        own, other = self.write, last[-1].write if last else self.write
        last[:] = [self]
        self.write = other
        try:
            flush(self)
        finally:
            self.write = own

    return broken


def passed_over(take_newest: Any) -> Any:
    """Every tenth run counts as handed out and is not."""
    runs = [0]

    def broken(self: Any, run: Any, metadata: Any) -> bool:
        runs[0] += 1
        if runs[0] % 10 or not self.dispatcher.take_newest(run, metadata):
            return bool(take_newest(self, run, metadata))
        return True

    return broken
