"""Prometheus' text format: labels, families, and the lines of many series of one family. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ports.metrics.histogram import Histogram
from ports.metrics.metric_help import head
from ports.metrics.op_stats import OpStats, quantile_ms

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LINES_AT_A_TIME = 2000
"""Lines written between two turns of the loop: about a millisecond's worth."""
LATENCY_ENDS = ("le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow")
"""Ends of the names of buckets of milliseconds (`managed_ledger.meters.LATENCY_BUCKETS_MS`)."""
Sample = tuple[str, str, float]
"""Name, kind (gauge or counter), value."""
ROWS_LET_GO = 500


def labels(**values: str) -> str:
    """`{name="value",...} `, as it stands between a name and a value."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in values.items()) + "} "


def escaped(value: str) -> str:
    if '"' in value or "\\" in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def family(name: str, kind: str, series: Sequence[str], rows: Sequence[Sequence[float]], column: int) -> Iterator[str]:
    """All series of one name, whose values are a column of `rows`, in pieces of LINES_AT_A_TIME lines."""
    begin = head(name, kind)
    for start in range(0, len(series), LINES_AT_A_TIME):
        end = start + LINES_AT_A_TIME
        pairs = zip(series[start:end], rows[start:end], strict=True)
        yield begin + "".join([f"{name}{label}{row[column]}\n" for label, row in pairs])
        begin = ""


def samples_text(label: str, samples: Iterable[Sample]) -> str:
    """Single series, each a family of its own."""
    return "".join(head(name, kind) + f"{name}{label}{value}\n" for name, kind, value in samples)


def summary_text(name: str, cluster: str, stats: OpStats, quantiles: Sequence[float], now: float) -> str:
    """Latencies in milliseconds, failed ones too."""
    stats.look(now)
    parts = (stats.succeeded, stats.failed)
    lines = [head(name, "summary").rstrip("\n")]
    for quantile in quantiles:
        value = quantile_ms(parts, quantile)
        lines.append(f'{name}{{cluster="{escaped(cluster)}",quantile="{quantile}"}} {"NaN" if value != value else value}')
    label = labels(cluster=cluster)
    lines.append(f"{name}_count{label}{sum(part.count for part in parts)}")
    lines.append(f"{name}_sum{label}{1000 * sum(part.seconds for part in parts)}")
    return "\n".join(lines) + "\n"


def histogram_lines(name: str, plain: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    """One series; the caller that writes all series of the name writes the line with its type."""
    cumulative = histogram.cumulative()
    for bound, count in zip((*map(float, histogram.bounds), "+Inf"), cumulative, strict=True):
        yield f"{name}_bucket{labels(**plain, le=str(bound))}{count}\n"
    yield f"{name}_count{labels(**plain)}{cumulative[-1]}\n"
    yield f"{name}_sum{labels(**plain)}{histogram.total}\n"


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
