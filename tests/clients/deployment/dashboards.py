"""Queries of dashboards, evaluated by Prometheus's own engine over scraped texts (`promql/main.go`).

`stock_metrics.txt` has the names that the stock dashboards of Pulsar's charts use. Owns the build of the program and its input.
"""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.toolchain import BUILD, ROOT, run_tool

PROGRAM = Path(__file__).parent / "promql"
DEPLOY = ROOT / "deploy"
BUILD_SECONDS_MAX = 900
BEGAN_MS, INTERVAL_MS = 1_000_000_000_000, 15_000
"""Times of scrapes that the engine is told: evenly spaced, however long a busy machine took."""

STOCK = Path(__file__).parent / "stock_metrics.txt"
NOT_HERE, ASKED_FOR = "not here", "where it is asked for"
_COUNTED = re.compile(
    r".*(_total|_TOTAL|_COUNT|_BYTES|_hits|_misses|_sum|_ops|_requests|_connections)|(bookie|bookkeeper|auditor|replication)_.*_count|pulsar_txn_.*_count"
)
"""Names of metrics of which panels show the growth."""
AFTER_A_MINUTE = "pulsar_lb_resource_usage_stats"
"""The leader tells it when it has compared the brokers once (tests/broker/admin/metrics/test_operations.py)."""
_OF_A_DIRECTORY = "bookie_ledger_dir_"


@dataclass(frozen=True, slots=True)
class Scrape:
    """Metrics of one process at a time."""

    at_ms: int
    labels: Mapping[str, str]
    text: str


def stock_metrics() -> dict[str, dict[str, list[str]]]:
    """Names with their labels, by section of the file."""
    found: dict[str, dict[str, list[str]]] = {}
    for text in STOCK.read_text().splitlines():
        if text.startswith("["):
            section = found.setdefault(text.strip("[]"), {})
        elif text and not text.startswith("#"):
            name, _, labels = text.partition(" ")
            section[name] = labels.split(",") if labels else []
    return found


def stock_queries() -> list[str]:
    """Queries of all names but those of the last two sections; a series counts only when it has all labels."""
    sections = stock_metrics()
    return [
        _query(name, labels)
        for section in sections.keys() - {NOT_HERE, ASKED_FOR}
        for name, labels in sections[section].items()
        if name != AFTER_A_MINUTE
    ]


def _query(name: str, labels: Sequence[str]) -> str:
    if name.startswith(_OF_A_DIRECTORY):
        return f'sum({{__name__=~"{_OF_A_DIRECTORY}.+_usage"}}) by (job, instance)'
    selected = name + "{" + ",".join(f'{label}!=""' for label in labels) + "}"
    grouped = ", ".join(["job", "instance", *labels])
    return f"sum(rate({selected}[5m])) by ({grouped})" if _COUNTED.fullmatch(name) else f"sum({selected}) by ({grouped})"


def board_queries() -> list[str]:
    """Queries of all panels of the boards in deploy/."""
    boards = [json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana" / "boards").glob("*.json"))]
    return [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]


def scrape(placed: Mapping[str, str], turn: int = 0) -> list[Scrape]:
    """Scrapes of all targets in deploy/prometheus.yml; `placed`: the address of each. With `up`. `turn`: 0, 1, 2..."""
    found = []
    for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]:
        for target in (target for where in job["static_configs"] for target in where["targets"]):
            with urllib.request.urlopen(f"http://{placed[target]}/metrics", timeout=60) as answer:
                text = answer.read().decode() + "up 1\n"
            found.append(Scrape(BEGAN_MS + turn * INTERVAL_MS, {"job": job["job_name"], "instance": target}, text))
    return found


def targets() -> list[str]:
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    return [target for job in jobs for where in job["static_configs"] for target in where["targets"]]


def built() -> Path:
    """The program; made anew when its source has changed. Go keeps what it has compiled."""
    BUILD.mkdir(exist_ok=True)
    binary = BUILD / "promql"
    run_tool(["go", "build", "-o", str(binary), "."], PROGRAM, BUILD_SECONDS_MAX)
    return binary


def asked(binary: Path, scrapes: Sequence[Scrape], queries: Sequence[str], rules: Sequence[Path] = ()) -> dict[str, Any]:
    """`results`, one for each query, and `rule_errors`."""
    question = {
        "scrapes": [{"at_ms": one.at_ms, "labels": dict(one.labels), "text": one.text} for one in scrapes],
        "queries": list(queries),
        "at_ms": max((one.at_ms for one in scrapes), default=BEGAN_MS) + 1,
        "rules": [str(path) for path in rules],
    }
    done = subprocess.run(
        [str(binary)], input=json.dumps(question), capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def without_data(binary: Path, scrapes: Sequence[Scrape], queries: Sequence[str]) -> list[str]:
    """Queries that give nothing, or cannot be evaluated, with why."""
    results = asked(binary, scrapes, queries)["results"]
    pairs = zip(queries, results, strict=True)
    return [f"{query}: {result['error'] or 'no data'}" for query, result in pairs if result["error"] or not result["series"]]


def metric_names(expression: str) -> set[str]:
    """Names in a rule, whose expression gives nothing while all is well."""
    bare = re.sub(r'\{[^}]*\}|\[[^]]*\]|by \([^)]*\)|"[^"]*"', " ", expression)
    return {word for word in re.findall(r"[A-Za-z_]\w*", bare) if "_" in word or word == "up"}
