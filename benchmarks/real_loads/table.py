"""The rows of a run as a table in Markdown: each load on each server, and how many times Apache's figure ours is."""

from collections.abc import Mapping, Sequence

from benchmarks.real_loads.loads import LOADS
from benchmarks.real_loads.tools import Row

Path = tuple[str, ...]

COLUMNS: Mapping[str, Path] = {
    "msgs/s": ("msgs_s",),
    "consumed/s": ("received_s",),
    "server CPU s per million": ("server_cpu_s_per_M",),
    "publish p50 ms": ("publish", "p50_ms"),
    "p99": ("publish", "p99_ms"),
    "end to end p50 ms": ("e2e", "p50_ms"),
    "p99 ": ("e2e", "p99_ms"),
    "RSS MB": ("server_rss_MB",),
}
_NOTED: Mapping[str, Path] = {
    "consumed/published": ("consumed_share",),
    "subscribing s": ("subscribing", "seconds"),
    "subscribing CPU s": ("subscribing", "server_cpu_s"),
    "backlog read/s": ("caught_up_s",),
    "acknowledged/s": ("acknowledged", "msgs_s"),
    "acknowledged CPU s per million": ("acknowledged", "server_cpu_s_per_M"),
    "beside it/s": ("beside", "msgs_s"),
    "all back s": ("all_back_s",),
    "first back to last s": ("all_back_after_first_s",),
    "CPU s": ("server_cpu_s",),
    "CPU s after ready": ("server_cpu_s_after_ready",),
}


def value_at(row: Row, path: Path) -> float | None:
    found: object = row
    if path == ("consumed_share",):
        return _consumed_share(row)
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None


def _consumed_share(row: Row) -> float | None:
    """Consumed share of the published messages; None where one of them is no figure of this load."""
    consumed, published = value_at(row, COLUMNS["consumed/s"]), value_at(row, COLUMNS["msgs/s"])
    goes_to_many = bool(consumed and published and consumed > 2 * published)
    return consumed / published if consumed and published and not goes_to_many else None


def mean(rows: Sequence[Row], path: Path) -> float | None:
    values = [value for row in rows if (value := value_at(row, path)) is not None]
    return sum(values) / len(values) if values else None


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(rows: Sequence[Row]) -> str:
    """Every figure is the mean of the runs; a note has the spread of the CPU's and what the columns have no room for."""
    lines = ["| load | server | " + " | ".join(COLUMNS) + " | note |", "| --- " * (len(COLUMNS) + 3) + "|"]
    for name, load in LOADS.items():
        of_load = [row for row in rows if row["load"] == name]
        servers = list(dict.fromkeys(row["server"] for row in of_load))
        sides = [[row for row in of_load if row["server"] == server] for server in servers]
        lines += [_line(load.what, server, side) for server, side in zip(servers, sides, strict=True)]
        if len(sides) == 2:
            apache, ours = sides
            ratios = (_ratio(apache, ours, path) for path in COLUMNS.values())
            lines.append(f"| | **ours / Apache** | {' | '.join(ratios)} | {_noted_ratios(apache, ours)} |")
    return "\n".join(lines)


def _line(what: str, server: str, rows: Sequence[Row]) -> str:
    cells = (number(mean(rows, path)) for path in COLUMNS.values())
    return f"| {what} | {server} | {' | '.join(cells)} | {'; '.join(_notes(rows))} |"


def _notes(rows: Sequence[Row]) -> list[str]:
    spread = [value for row in rows if (value := value_at(row, COLUMNS["server CPU s per million"])) is not None]
    notes = [f"CPU of each run {', '.join(map(number, spread))}"] if len(spread) > 1 else []
    notes += [f"{name} {number(value)}" for name, path in _noted(rows) if (value := mean(rows, path)) is not None]
    notes += [f"error: {row['error']}" for row in rows if "error" in row]
    lost = sum(row.get("errors", 0) for row in rows)
    return [*notes, *([f"{lost} failed"] if lost else [])]


def _noted(rows: Sequence[Row]) -> Sequence[tuple[str, Path]]:
    """Notes beside the columns; the CPU in seconds only where the load is over with its count."""
    counted = any("all_back_s" in row for row in rows)
    return [(name, path) for name, path in _NOTED.items() if counted or not name.startswith("CPU")]


def _ratio(apache: Sequence[Row], ours: Sequence[Row], path: Path) -> str:
    theirs, own = mean(apache, path), mean(ours, path)
    return f"{own / theirs:.2f}" if theirs and own is not None else "-"


def _noted_ratios(apache: Sequence[Row], ours: Sequence[Row]) -> str:
    ratios = ((name, _ratio(apache, ours, path)) for name, path in _noted(ours))
    return "; ".join(f"{name} {ratio}" for name, ratio in ratios if ratio != "-")
