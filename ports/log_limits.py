"""Limits on log lines: how many lines one place in the code may say in a while, and how many it had to leave out. Pure.

A peer can cause a line with each frame, request or connection, and no crowd of peers may fill a disk with them. The limit is
applied where lines leave the process (`ports.logs`), so it holds for every place and every cause of a line; what is left out is
counted, and told when the while is over with the next line of any place. Lines below the level `info` have no limit: an
operator who turned them on wants all of them.
"""

from dataclasses import dataclass

Place = tuple[str, str, int]
"""A place in the code: logger, file and line."""
LINES_MAX = 300
"""Lines from one place in a period: more than a reader takes in, and about 60 KB."""
PERIOD_SECONDS = 60.0


@dataclass(slots=True)
class _Period:
    """The period of one place that has begun."""

    began_at: float
    lines: int = 0
    left_out: int = 0


class LineLimits:
    """The counts of all places. `now` is in seconds, on a clock that does not go back."""

    def __init__(self, lines_max: int = LINES_MAX, period_seconds: float = PERIOD_SECONDS) -> None:
        self._lines_max = lines_max
        self._period_seconds = period_seconds
        self._places: dict[Place, _Period] = {}
        self._look_at = 0.0

    def lets_through(self, place: Place, now: float) -> bool:
        """Whether a line of that place is logged; else it is counted. `ended` was called before with that time."""
        known = self._places.get(place)
        if known is None:
            if not self._places:
                self._look_at = now + self._period_seconds
            known = self._places[place] = _Period(now)
        if known.lines >= self._lines_max:
            known.left_out += 1
            return False
        known.lines += 1
        return True

    def ended(self, now: float) -> list[tuple[Place, int]]:
        """The places whose period is over and that left lines out, with their number. All places whose period is over begin
        anew; asking costs nothing while there are none."""
        if now < self._look_at or not self._places:
            return []
        over = [place for place, known in self._places.items() if known.began_at + self._period_seconds <= now]
        counts = [(place, self._places.pop(place).left_out) for place in over]
        self._look_at = min((known.began_at for known in self._places.values()), default=now) + self._period_seconds
        return [(place, left_out) for place, left_out in counts if left_out]
