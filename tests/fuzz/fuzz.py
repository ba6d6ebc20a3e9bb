"""Fuzz: seeds one after the other against one server, with a bystander; what is found, and what was seen of the server."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .admin import Admin, path_of
from .aftermath import Aftermath
from .bystander import Bystander
from .seed_run import SeedRun
from .watched_server import Use, WatchedServer

log = logging.getLogger(__name__)

LOOK_EVERY = 25


@dataclass(slots=True)
class Report:
    """Report on all seeds. `uses`: every so often, in order."""

    seeds: int = 0
    commands: int = 0
    connections: int = 0
    ended: int = 0
    stored: int = 0
    findings: list[tuple[int, str]] = field(default_factory=list)
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    uses: list[Use] = field(default_factory=list)
    bystander_messages: int = 0
    bystander_seconds: list[float] = field(default_factory=list)
    """Seconds of each of the bystander's round trips, sorted."""


async def fuzz(server: WatchedServer, where: tuple[str, int, int], seeds: Iterable[int]) -> Report:
    host, port, web_port = where
    admin, report = Admin(host, web_port), Report()
    await admin.begin()
    bystander = Bystander(host, port)
    await bystander.begin()
    beside = asyncio.create_task(bystander.run())
    try:
        for seed in seeds:
            await _one(server, SeedRun(seed, host, port, report.errors), admin, Aftermath(host, port, admin), report)
            if beside.done():
                break
            if report.seeds % LOOK_EVERY == 1:
                report.uses.append(server.use())
    finally:
        beside.cancel()
        await asyncio.wait([beside])
    if not beside.cancelled() and (failure := beside.exception()) is not None:
        report.findings.append((-1, f"the bystander: {type(failure).__name__} {failure}"))
    await bystander.end()
    report.uses.append(server.use())
    report.bystander_messages, report.bystander_seconds = bystander.received, sorted(bystander.round_trips)
    return report


async def _one(server: WatchedServer, run: SeedRun, admin: Admin, aftermath: Aftermath, report: Report) -> None:
    seed = run.known.seed
    if seed % 3 == 0:
        await admin.call("PUT", f"{path_of(run.known.topics[3])}/partitions", 2)
    if seed % 4 == 0:
        await admin.call("POST", "namespaces/public/fuzz/deduplication", seed % 8 == 0)
    outcome = await run.run()
    findings = await aftermath.look(run.known) + server.said()
    findings += [f"{text} ({peer}: {server.reason_of(peer)})" for peer, text in outcome.findings]
    findings += [f"{peer} was ended, and the log gives no reason" for peer in outcome.ended if not server.reason_of(peer)]
    for each in findings:
        log.warning("seed %d: %s", seed, each)
    report.findings += [(seed, each) for each in findings]
    report.seeds += 1
    report.commands += outcome.commands
    report.connections += outcome.connections
    report.ended += len(outcome.ended)
    report.stored += sum(map(len, run.known.published.values()))


def summary(report: Report) -> list[str]:
    """Lines for people."""
    seconds, first, last = report.bystander_seconds, report.uses[0], report.uses[-1]
    lines = [
        f"{report.seeds} seeds, {report.commands} commands on {report.connections} connections, of which {report.ended} were"
        f" ended for a cause; {report.stored} messages stored",
        f"server: {first.resident_mb:.0f} to {last.resident_mb:.0f} MB, {first.open_files} to {last.open_files} open files,"
        f" {last.cpu_seconds:.0f} CPU seconds",
    ]
    with contextlib.suppress(IndexError):
        lines.append(
            f"bystander: {report.bystander_messages} messages; ten there and back in {1000 * seconds[len(seconds) // 2]:.0f} ms"
            f" (p50), {1000 * seconds[len(seconds) * 99 // 100]:.0f} ms (p99), {1000 * seconds[-1]:.0f} ms at most"
        )
    lines += [f"seed {seed}: {text}" for seed, text in report.findings]
    return [*lines, f"{len(report.findings)} findings"]
