"""Costs of very many topics on one broker: `python -m benchmarks.many_topics --load LOAD_TOOL --topics 100000`.

On our standalone: topics made, loaded after a kill -9, an idle minute with a producer on each, lookups, what a message costs
when a rate is spread over 1 to 10,000 topics; then `--failover-topics` on one of two brokers of a cluster, which is killed.
Apache's standalone does the same with `--apache-topics`, but no failover. A row of JSON for each stage, a table at the end.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.many_topics.failover import failed_over
from benchmarks.many_topics.stages import KEPT, Site, loaded, made, printed, spread
from benchmarks.real_loads.servers import ApacheStandalone, OurStandalone, Server, tls_settings
from benchmarks.real_loads.table import number, value_at
from benchmarks.real_loads.tools import Row, Tools, built
from tests.clients.apache_broker_process import apache_classpath

COLUMNS = {
    "a second": ("msgs_s",),
    "p50 ms": ("publish", "p50_ms"),
    "p99": ("publish", "p99_ms"),
    "worst": ("publish", "max_ms"),
    "end to end p50 ms": ("e2e", "p50_ms"),
    "p99 ": ("e2e", "p99_ms"),
    "server CPU s": ("server_cpu_s",),
    "CPU s per million": ("server_cpu_s_per_M",),
    "RSS MB": ("server_rss_MB",),
    "KB a topic": ("rss_per_topic_KB",),
    "ready s": ("ready_s",),
}
STAGES = ("topics", "spread", "failover")


def rows_of(server: Server, tools: Tools, topics: int, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of one standalone, which is started for each of the two stages with an empty directory."""
    site = Site(server, tools, topics, options.seconds, options.idle_seconds)
    server.start()
    if "topics" in options.stage:
        yield printed(server.name, topics, made(site))
        for row in loaded(site):
            yield printed(server.name, topics, row)
    if "spread" in options.stage:
        for row in spread(site):
            yield printed(server.name, topics, row)
    server.close()


def all_rows(scratch: Path, options: argparse.Namespace) -> Iterator[Row]:
    tools = built(options.load, scratch)
    _, tls = tls_settings(scratch / "authority")
    settings = {**tls, **KEPT}
    if not options.ours_alone and set(options.stage) != {"failover"}:
        classpath = options.classpath.read_text().strip() if options.classpath else apache_classpath(scratch)
        yield from rows_of(
            ApacheStandalone(scratch / "apache", settings, classpath, tools), tools, options.apache_topics, options
        )
    if set(options.stage) != {"failover"}:
        yield from rows_of(OurStandalone(scratch / "ours", settings), tools, options.topics, options)
    if "failover" in options.stage:
        yield printed("ours", options.failover_topics, failed_over(scratch / "cluster", tools, options.failover_topics))


def markdown(rows: list[Row]) -> str:
    lines = [f"| stage | server | topics | {' | '.join(COLUMNS)} | note |", "| --- " * (len(COLUMNS) + 4) + "|"]
    for row in sorted(rows, key=lambda row: [each["stage"] for each in rows].index(row["stage"])):
        cells = " | ".join(number(value_at(row, path)) for path in COLUMNS.values())
        note = f"error: {row['error']}" if "error" in row else ""
        lines.append(f"| {row['stage']} | {row['server']} | {row['topics']:,} | {cells} | {note} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many_topics", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", type=Path, required=True, metavar="PROGRAM", help="the neutral load tool")
    parser.add_argument("--classpath", type=Path, metavar="FILE", help="Apache's jars; without it Maven finds them")
    parser.add_argument("--topics", type=int, default=100_000, help="on ours")
    parser.add_argument("--apache-topics", type=int, default=10_000)
    parser.add_argument("--failover-topics", type=int, default=10_000)
    parser.add_argument("--stage", action="append", choices=STAGES, help="this one alone; may be repeated")
    parser.add_argument("--ours-alone", action="store_true", help="without Apache's standalone")
    parser.add_argument("--seconds", type=float, default=6, help="of lookups, and of each rate")
    parser.add_argument("--idle-seconds", type=float, default=60)
    options = parser.parse_args()
    options.stage = options.stage or list(STAGES)
    with tempfile.TemporaryDirectory(prefix="many-topics-") as scratch:
        rows = list(all_rows(Path(scratch), options))
    print(markdown(rows))


if __name__ == "__main__":
    main()
