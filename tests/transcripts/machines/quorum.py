"""Writes of a ledger in transcripts: the calls of `QuorumTracker` as events, and what they return as effects."""

from collections.abc import Iterable, Iterator, Mapping

from bookkeeper.write.quorum_tracker import Changed, Quorum, QuorumTracker, Send, Verdict
from tests.transcripts.transcript import Step
from wire.bookie.codes import BookieCode


class Quorums:
    """One ledger; `with ensemble= write= ack=`, and `delays_change`."""

    def __init__(self, given: Step) -> None:
        quorum = Quorum(given.number("ensemble"), given.number("write"), given.number("ack"))
        self._tracker = QuorumTracker(quorum, delays_change=given.flag("delays_change"))

    def handle(self, step: Step) -> Iterable[str]:
        tracker = self._tracker
        match step.name:
            case "Appended":
                return _sends(tracker.on_append(step.number("first"), step.number("count", 1)))
            case "Stored":
                return ["Confirm"] if tracker.on_stored(step.number("piece"), step.number("seat")) else []
            case "Failed":
                code = step.member("code", BookieCode)
                return [_verdict(tracker.on_failed(step.number("piece"), step.number("seat"), code))]
            case "Changed":
                return _changed(tracker.on_changed(step.numbers("replaced"), step.numbers("kept")))
            case "Kept":
                return [_verdict(tracker.on_kept(step.numbers("seats")))]
            case "PatienceEnded":
                tracker.on_patience_ended()
                return []
        return self._counted(step)

    def _counted(self, step: Step) -> list[str]:
        """Events of `CountedAdds`, which counts the answers itself while all is well."""
        tracker = self._tracker
        match step.name:
            case "Counted":
                tracker.on_counted(step.number("last_confirmed"))
                return []
            case "CountedAppended":
                acked = sum(1 << seat for seat in step.numbers("acked"))
                return [f"Piece {tracker.on_append_counted(step.number('first'), step.number('count', 1), acked)}"]
        raise step.unknown()

    def state(self) -> Mapping[str, str]:
        tracker = self._tracker
        state = {
            "last confirmed": str(tracker.last_confirmed),
            "pending pieces": str(tracker.pending_count),
            "seats": _numbers(tracker.seats),
        }
        if tracker.leaving:
            state["leaving"] = _numbers(tracker.leaving)
        if tracker.failure is not None:
            state["failure"] = tracker.failure.name
        return state

    def check_invariants(self) -> None:
        self._tracker.check_invariants()


def _changed(changed: Changed) -> Iterator[str]:
    for index, seat in changed.seats.items():
        yield f"Seat index={index} seat={seat}"
    yield from _sends(changed.sends)


def _sends(sends: Iterable[Send]) -> list[str]:
    return [f"Send piece={send.piece} entries={_entries(send)} seats={_numbers(send.seats)}" for send in sends]


def _entries(send: Send) -> str:
    first = send.first_entry_id
    return str(first) if send.count == 1 else f"{first}-{first + send.count - 1}"


def _verdict(verdict: Verdict) -> str:
    return f"Verdict {verdict.name}"


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
