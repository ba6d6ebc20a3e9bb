"""Every name that the stock boards ask for is told, or docs/metrics.md says why not; what it says is not there is not."""

import re
from fnmatch import fnmatch

from tests.clients.deployment.dashboards import NOT_HERE, stock_metrics
from tests.started_process import ROOT


def absent_patterns() -> list[str]:
    """Patterns in the table's first column; `_b` behind `some_a` is `some_b`."""
    rows = [line for line in (ROOT / "docs" / "metrics.md").read_text().splitlines() if line.startswith("| `")]
    found: list[str] = []
    for row in rows:
        whole = ""
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            whole = whole if name.startswith("_") else name
            found.append(whole.rpartition("_")[0] + name if name.startswith("_") else name)
    return found


def test_each_metric_that_the_dashboards_ask_for_and_is_absent_has_a_reason() -> None:
    patterns = absent_patterns()
    unexplained = [name for name in stock_metrics()[NOT_HERE] if not any(fnmatch(name, each) for each in patterns)]
    assert unexplained == []


def test_no_name_is_said_to_be_absent_that_is_told() -> None:
    patterns, sections = absent_patterns(), stock_metrics()
    told = [name for section in sections.keys() - {NOT_HERE} for name in sections[section]]
    assert [name for name in told if any(fnmatch(name, each) for each in patterns)] == []
    assert len(told) > 150
