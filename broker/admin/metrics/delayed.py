"""The metrics of stored delayed messages, of topics and subscriptions that have any (Apache: PIP-195). Pure.

All are gauges, as Apache's text says; `pulsar_delayed_message_index_loaded` counts all that wait, since all are in memory here.
"""

from collections.abc import Sequence

from ...topic.statistics.delayed_stats import IndexMetric
from .text import Table, escaped


class IndexTables:
    """A table for each name that there is."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}

    def add(self, label: str, metrics: Sequence[IndexMetric]) -> None:
        """`label` without its end, so that more can follow."""
        for each in metrics:
            table = self._tables.get(each.name) or self._tables.setdefault(each.name, Table(((each.name, "gauge"),)))
            pairs = zip(each.labels[::2], each.labels[1::2], strict=True)
            table.add(label + "".join(f',{name}="{escaped(value)}"' for name, value in pairs) + "} ", (each.value,))

    def all(self) -> tuple[Table, ...]:
        return tuple(self._tables.values())
