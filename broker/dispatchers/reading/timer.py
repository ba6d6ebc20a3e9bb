"""The one timer of a dispatcher: set for the earliest time that it waits for, and set again only when that changes."""

from ..contract import Effect, SetTimer


class Timer:
    """Remembers the time last given to the driver."""

    __slots__ = ("_at_ms",)

    def __init__(self) -> None:
        self._at_ms: int | None = None

    def arm(self, effects: list[Effect], *deadlines_ms: int | None) -> None:
        wanted = None
        for deadline in deadlines_ms:
            if deadline is not None and (wanted is None or deadline < wanted):
                wanted = deadline
        if wanted is not None and wanted != self._at_ms:
            effects.append(SetTimer(wanted))
            self._at_ms = wanted

    def fired(self) -> None:
        self._at_ms = None
