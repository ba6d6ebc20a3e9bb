"""Planted bugs of the ways on which many messages go together: receipts of parts, and runs handed out as they are confirmed."""

from typing import Any

from bookkeeper.write.parts import Part
from broker.connection.producers.receipts import Receipts
from broker.topic.dispatch.deliveries import Deliveries
from managed_ledger.append.listeners import ConfirmedListeners


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


def id_given_twice_in_a_read(take_parts: Any) -> Any:
    """Gives every fifth entry of a read the id of the entry before it in its log."""

    def broken(
        handles: Any, sends: Any, place: int, now: float, now_ms: int, bytes_max: int, make: Any, parts: list[Part]
    ) -> int:
        known = len(parts)
        stopped: int = take_parts(handles, sends, place, now, now_ms, bytes_max, make, parts)
        for part in parts[known:]:
            if part.first_entry_id % 5 == 4:
                part.first_entry_id, part.last_entry_id = part.first_entry_id - 1, part.last_entry_id - 1
        return stopped

    return broken


def log_skipped_in_a_pass(store_parts: Any) -> Any:
    """Every third log of which a part was stored is not told of it."""
    moved = [0]

    def broken(parts: Any, place: int, seat: int, now: float, due: list[Any]) -> int:
        known = len(due)
        stopped: int = store_parts(parts, place, seat, now, due)
        for each in due[known:]:
            if isinstance(each, ConfirmedListeners):
                moved[0] += 1
                if moved[0] % 3 == 0:
                    due.remove(each)
        return stopped

    return broken


def handed_out_and_not_sent(hand_out: Any) -> Any:
    """Every tenth part that the kernel hands out is not sent."""
    parts = [0]

    def broken(topic: Any, new: Any, now_ms: int, deliveries: Any) -> int:
        parts[0] += 1
        taken: int = hand_out(topic, new, now_ms, {} if parts[0] % 10 == 0 else deliveries)
        return taken

    return broken


def sent_at_the_end_of_the_turn_alone(send_first: Any) -> Any:
    """Frames that are written at once overtake the runs that wait for the end of their turn."""

    def broken(self: Deliveries, link: Any) -> None:
        if not self._is_due:  # `_send`, at the end of the turn
            send_first(self, link)

    return broken
