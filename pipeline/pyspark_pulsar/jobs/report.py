"""Report of a job: JSON for programs, and one self-contained page of HTML with bars drawn in SVG.

The JSON has a version; docs/pipeline-jobs.md says what each means.
"""

import html
import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

VERSION = 1
_BARS_MAX = 50
"""Bars drawn, for the largest of more rows; the table has all."""
_BAR_PIXELS, _ROW_PIXELS, _LABEL_PIXELS, _NUMBER_PIXELS = 420, 22, 340, 120
_LABEL_COLUMNS, _LABEL_END_COLUMNS = 44, 30
"""Columns of a name, and of the end kept of a longer one: names of topics, and of partitions, differ there."""
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}.wide{overflow-x:auto;margin:.5rem 0 1.5rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left;vertical-align:top}"
    "td{overflow-wrap:anywhere;max-width:26rem;unicode-bidi:isolate;white-space:pre-wrap}td.text{min-width:18rem}"
    "th{background:#f3f3f3;white-space:nowrap}svg{max-width:100%;height:auto}svg text{font-size:13px;unicode-bidi:isolate}"
    "td.number,td.time{white-space:nowrap}td.number{text-align:right}.long{max-height:9rem;overflow:auto}.none{color:#777}"
    ".facts td{max-width:44rem}.facts td.number{text-align:left}.facts td:first-child{white-space:nowrap}"
)
_TEXT_CHARACTERS, _LONG_CHARACTERS = 30, 600


@dataclass(frozen=True, slots=True)
class Table:
    """`bars`: the column whose numbers are drawn, "" for none; the first column is what they are of."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bars: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """`is_fine` False makes the job's exit code 1. `findings`: a sentence for each thing that is wrong, for a terminal."""

    job: str
    facts: Mapping[str, Any]
    tables: Sequence[Table] = field(default_factory=tuple)
    is_fine: bool = True
    is_dry_run: bool = False
    findings: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        tables = {each.title: [dict(zip(each.columns, row, strict=True)) for row in each.rows] for each in self.tables}
        about = {"version": VERSION, "job": self.job, "dry run": self.is_dry_run, "fine": self.is_fine}
        return {**about, "facts": dict(self.facts), "tables": tables}


def write(report: Report, directory: Path) -> list[Path]:
    """`JOB.json` and `JOB.html`, each whole or as it was before."""
    directory.mkdir(parents=True, exist_ok=True)
    places = [directory / f"{report.job}.json", directory / f"{report.job}.html"]
    _write_whole(places[0], json.dumps(report.as_json(), indent=2, default=str) + "\n")
    _write_whole(places[1], page(report))
    return places


def _write_whole(place: Path, text: str) -> None:
    half = place.with_name(f".{place.name}.half")
    try:
        half.write_text(text, encoding="utf-8", errors="replace")
        os.replace(half, place)
    finally:
        half.unlink(missing_ok=True)


def page(report: Report) -> str:
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(report.job)}</title><style>{_STYLE}</style>"]
    parts.append(f"<h1>{_text(report.job)}: {_said(report)}</h1>")
    parts.append(_table(Table("", ("", ""), list(report.facts.items())), "facts"))
    for each in report.tables:
        parts += [f"<h2>{_text(each.title)}</h2>", _bars(each) if each.bars and each.rows else "", _table(each)]
    return "\n".join([*parts, "</html>\n"])


def _said(report: Report) -> str:
    found = "nothing wrong" if report.is_fine else "something was found"
    return f"{found} (a dry run: nothing was done)" if report.is_dry_run else found


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))


def _table(table: Table, kind: str = "") -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in table.columns)
    rows = "".join("<tr>" + "".join(_cell(each) for each in row) + "</tr>" for row in table.rows)
    rows = rows or f'<tr><td class="none" colspan="{len(table.columns)}">none</td></tr>'
    return f'<div class="wide {kind}"><table>{f"<tr>{head}</tr>" if any(table.columns) else ""}{rows}</table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{_text(value)}</td>'
    if isinstance(value, datetime):
        return f'<td class="time">{value.isoformat(" ", "seconds").removesuffix("+00:00")}</td>'
    text = _text(value)
    if len(text) > _LONG_CHARACTERS:
        return f'<td class="text"><div class="long">{text}</div></td>'
    return f'<td class="text">{text}</td>' if len(text) > _TEXT_CHARACTERS else f"<td>{text}</td>"


def _bars(table: Table) -> str:
    index = list(table.columns).index(table.bars)
    largest = set(sorted(range(len(table.rows)), key=lambda at: -table.rows[at][index])[:_BARS_MAX])
    drawn = [row for at, row in enumerate(table.rows) if at in largest]
    most, lines = max(row[index] for row in drawn) or 1, []
    for place, row in enumerate(drawn):
        y, width = place * _ROW_PIXELS, max(1, round(_BAR_PIXELS * row[index] / most))
        name = f"<title>{_text(row[0])}</title>{_text(_short('' if row[0] is None else str(row[0])))}"
        lines.append(f'<text x="{_LABEL_PIXELS - 8}" y="{y + 15}" text-anchor="end">{name}</text>')
        lines.append(f'<rect x="{_LABEL_PIXELS}" y="{y + 3}" width="{width}" height="15" fill="#4a78b0"/>')
        lines.append(f'<text x="{_LABEL_PIXELS + width + 6}" y="{y + 15}">{_text(row[index])}</text>')
    size = _LABEL_PIXELS + _BAR_PIXELS + _NUMBER_PIXELS, len(drawn) * _ROW_PIXELS + 6
    about = f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" role="img"'
    more = f"<p>The {_BARS_MAX} largest of {len(table.rows)}.</p>" if len(table.rows) > len(drawn) else ""
    return f'<svg {about} aria-label="{_text(table.bars)}">{"".join(lines)}</svg>{more}'


def _short(name: str) -> str:
    """Name in one line of limited columns; a Chinese character takes two of them."""
    name = " ".join(name.split())
    if _columns(name) <= _LABEL_COLUMNS:
        return name
    end, start = len(name), 0
    while _columns(name[end - 1 :]) <= _LABEL_END_COLUMNS:
        end -= 1
    while _columns(name[: start + 1]) < _LABEL_COLUMNS - _LABEL_END_COLUMNS:
        start += 1
    return f"{name[:start]}\u2026{name[end:]}"


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
