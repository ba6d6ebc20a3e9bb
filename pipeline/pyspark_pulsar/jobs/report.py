"""What a job found: JSON for programs, and one page of HTML with bars drawn in SVG, which needs nothing from anywhere."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_BAR_PIXELS, _ROW_PIXELS, _LABEL_PIXELS = 420, 22, 260
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}"
    "th{background:#f3f3f3}svg text{font-size:13px}.number{text-align:right}"
)


@dataclass(frozen=True, slots=True)
class Table:
    """`bars`: the column whose numbers are drawn, "" for none; the first column is what they are of."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bars: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """`is_fine` False makes the job's exit code 1."""

    job: str
    facts: Mapping[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    is_fine: bool = True

    def as_json(self) -> dict[str, Any]:
        tables = {each.title: [dict(zip(each.columns, row, strict=True)) for row in each.rows] for each in self.tables}
        return {"job": self.job, "fine": self.is_fine, "facts": dict(self.facts), "tables": tables}


def write(report: Report, directory: Path) -> list[Path]:
    """`JOB.json` and `JOB.html`."""
    directory.mkdir(parents=True, exist_ok=True)
    places = [directory / f"{report.job}.json", directory / f"{report.job}.html"]
    places[0].write_text(json.dumps(report.as_json(), indent=2, default=str) + "\n")
    places[1].write_text(page(report))
    return places


def page(report: Report) -> str:
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(report.job)}</title><style>{_STYLE}</style>"]
    parts.append(f"<h1>{_text(report.job)}: {'nothing wrong' if report.is_fine else 'differences'}</h1>")
    parts.append(_table(Table("", ("", ""), list(report.facts.items()))))
    for each in report.tables:
        parts += [f"<h2>{_text(each.title)}</h2>", _bars(each) if each.bars and each.rows else "", _table(each)]
    return "\n".join([*parts, "</html>\n"])


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in table.columns)
    rows = "".join("<tr>" + "".join(_cell(each) for each in row) + "</tr>" for row in table.rows)
    return f"<table>{f'<tr>{head}</tr>' if any(table.columns) else ''}{rows}</table>"


def _cell(value: Any) -> str:
    kind = ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{kind}>{_text(value)}</td>"


def _bars(table: Table) -> str:
    index = list(table.columns).index(table.bars)
    most = max((row[index] for row in table.rows), default=0) or 1
    lines = []
    for place, row in enumerate(table.rows):
        y, width = place * _ROW_PIXELS, max(1, round(_BAR_PIXELS * row[index] / most))
        lines.append(f'<text x="{_LABEL_PIXELS - 8}" y="{y + 15}" text-anchor="end">{_text(row[0])}</text>')
        lines.append(f'<rect x="{_LABEL_PIXELS}" y="{y + 3}" width="{width}" height="15" fill="#4a78b0"/>')
        lines.append(f'<text x="{_LABEL_PIXELS + width + 6}" y="{y + 15}">{_text(row[index])}</text>')
    size = f'width="{_LABEL_PIXELS + _BAR_PIXELS + 90}" height="{len(table.rows) * _ROW_PIXELS + 6}"'
    return f'<svg {size} role="img" aria-label="{_text(table.bars)}">{"".join(lines)}</svg>'
