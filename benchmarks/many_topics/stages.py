"""Costs of very many topics on one standalone: made, loaded after a kill, idle, looked up, and each message among them.

Each stage puts its work through the client of the real loads, and returns a row. Never in here: which server, and the table.
"""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.raw_client import process_use
from benchmarks.real_loads.servers import Server
from benchmarks.real_loads.tools import Row, Tool, Tools, last_row, run
from tests.toolchain import ROOT

PREFIX = "persistent://public/default/many"
SECONDS_MAX = 900
STEPS = (1, 10, 100, 1_000, 10_000)
"""Topics over which the messages of one rate are spread."""
RATE = 1_000
"""Messages a second, all topics together: few enough that none waits for the one before."""
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false"}
"""A topic without producers and subscriptions stays."""


@dataclass(frozen=True, slots=True)
class Site:
    """A server, the programs, how many topics it has, and how long the timed stages last."""

    server: Server
    tools: Tools
    topics: int
    seconds: float
    idle_seconds: float

    def command(self, load: str, *words: str, tool: Tool = Tool.CLIENT) -> Sequence[str]:
        where = ["-url", self.server.url, "-pid", str(self.server.pid)]
        return self.tools.command(tool, [load, *where, *words])

    def timed(self) -> tuple[str, ...]:
        return "-duration", f"{self.seconds}s", "-warmup", "3s"


@contextmanager
def producers(site: Site, messages: int) -> Iterator[Row]:
    """A producer on each topic, over one connection, until the context ends; the row of how they were made."""
    words = ["-n", str(site.topics), "-topic", PREFIX, "-messages", str(messages), "-size", "100", "-hold"]
    command = site.command("topics", *words, "-timeout", f"{SECONDS_MAX}s")
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        yield last_row(client.stdout.readline(), "the client ended without a row")
        client.stdin.close()


def made(site: Site) -> Row:
    """New topics, with one message each."""
    with producers(site, messages=1) as row:
        return _each_topic("made", row, site)


def loaded(site: Site) -> Iterator[Row]:
    """The same topics after a kill; then their cost while no client uses them, and lookups among them."""
    site.server.kill()
    began = time.monotonic()
    site.server.start()
    ready = round(time.monotonic() - began, 2)
    with producers(site, messages=0) as row:
        yield {**_each_topic("loaded after a kill", row, site), "ready_s": ready}
        yield _idle(site)
        found = run(site.command("lookups", "-n", str(site.topics), "-topic", PREFIX, *site.timed()))
        yield {"stage": "lookups, one after the other", **found}


def _each_topic(stage: str, row: Row, site: Site) -> Row:
    return {"stage": stage, **row, "rss_per_topic_KB": _kilobytes(row, site.topics)}


def _kilobytes(row: Row, topics: int) -> float:
    """Growth of the resident memory in KB, for each topic."""
    now, before = float(row.get("with_messages", {}).get("rss_MB", 0)), float(row.get("rss_before_MB", 0))
    return round(1000 * (now - before) / topics, 2)


def _idle(site: Site) -> Row:
    time.sleep(5)
    before = process_use(site.server.pid)
    time.sleep(site.idle_seconds)
    after = process_use(site.server.pid)
    used = after.cpu_seconds - before.cpu_seconds
    return {
        "stage": f"idle for {site.idle_seconds:.0f} s",
        "server_cpu_s": round(used, 2),
        "server_cores": round(used / site.idle_seconds, 4),
        "server_rss_MB": round(after.resident_mb),
    }


def spread(site: Site) -> Iterator[Row]:
    """Messages of one rate, published, delivered and acknowledged, on more and more topics; then published flat out."""
    for topics in (step for step in STEPS if step <= site.topics):
        paced = ["-topics", str(topics), "-rate", str(RATE), "-size", "100", "-type", "shared", "-par", "64"]
        row = run(site.command("many", *paced, *site.timed(), tool=Tool.LOAD))
        yield {"stage": f"{RATE:,}/s on {topics:,} topics, published and consumed", **row}
    for topics in (step for step in STEPS if step <= site.topics):
        row = run(site.command("spread", "-topics", str(topics), "-size", "100", *site.timed()))
        yield {"stage": f"published flat out, one by one over {topics:,} topics", **row}


def printed(name: str, topics: int, row: Row) -> Row:
    row = {"server": name, "topics": topics, **row}
    print(json.dumps(row), flush=True)
    return row
