"""The two lines with which Prometheus' text form begins a metric: what it counts, and of which type it is.

Owns the form of `metric_help.txt` beside it, which has a sentence for each metric of every process. A test scrapes real ones
and holds that no metric is without.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = Path(__file__).with_name("metric_help.txt")


@functools.lru_cache(maxsize=4096)
def head(name: str, kind: str) -> str:
    """`# HELP` and `# TYPE`, a line each."""
    text = help_of(name)
    return (f"# HELP {name} {text}\n" if text else "") + f"# TYPE {name} {kind}\n"


def help_of(name: str) -> str:
    """Sentence that describes the metric; empty where there is none."""
    plain, patterns = _table()
    if name in plain:
        return plain[name]
    found = next(((text, match) for pattern, text in patterns if (match := pattern.fullmatch(name))), None)
    return "" if found is None else found[0].replace("{}", found[1][1])


@functools.cache
def _table() -> tuple[Mapping[str, str], Sequence[tuple[re.Pattern[str], str]]]:
    """Sentences by name, and those of names with a `*`, in the order of the file."""
    rows = [row.split(" ", 1) for row in FILE.read_text().splitlines() if row and not row.startswith("#")]
    patterns = [(re.compile("(.*)".join(name.split("*"))), text) for name, text in rows if "*" in name]
    return {name: text for name, text in rows if "*" not in name}, patterns
