"""One load on one server, once: its tool run to the end, with the load beside it, or with a restart in its midst."""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from benchmarks.raw_client import process_use
from benchmarks.real_loads.loads import Load
from benchmarks.real_loads.servers import Server
from benchmarks.real_loads.tools import RUN_SECONDS_MAX, Row, Tool, Tools, last_row, run
from tests.toolchain import ROOT


@dataclass(frozen=True, slots=True)
class Measure:
    """Length of the timed loads, and whether the others have a tenth of their counts."""

    seconds: float
    warm_seconds: float
    is_short: bool = False


def measured(load: Load, server: Server, tools: Tools, authority: str, measure: Measure) -> Row:
    """Run the load once; its row, with the names of the load and the server."""
    where = ["-url", server.tls_url, "-ca", authority] if load.over_tls else ["-url", server.url]
    words = [*load.arguments(measure.seconds, measure.warm_seconds, measure.is_short), *where, "-pid", str(server.pid)]
    command = tools.command(load.tool, words)
    row: Row
    if load.restarts:
        row = _restarted(command, server)
    elif load.beside:
        row = _beside(command, tools.command(Tool.LOAD, load.beside), server, measure)
    else:
        row = run(command)
    return {"load": load.name, "server": server.name, **row}


def _beside(command: Sequence[str], other: Sequence[str], server: Server, measure: Measure) -> Row:
    lasting = ["-url", server.url, "-pid", str(server.pid), "-duration", f"{measure.seconds + measure.warm_seconds + 1}s"]
    with subprocess.Popen([*other, *lasting, "-warmup", "0s"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as busy:
        row = run(command)
        told, _ = busy.communicate(timeout=RUN_SECONDS_MAX)
    return {**row, "beside": last_row(told, "")}


def _restarted(command: Sequence[str], server: Server) -> Row:
    """Kill the server when all connections are open, start it again, and wait until they are back."""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        opened = client.stdout.readline()
        if "error" in opened or not opened:
            return last_row(opened, "no connection was opened")
        opened_mb = process_use(server.pid).resident_mb
        server.kill()
        client.stdin.write("down\n")
        client.stdin.flush()
        began = time.monotonic()
        try:
            server.start()
        except AssertionError as error:
            client.kill()
            return {"error": str(error)}
        ready = time.monotonic() - began
        cpu_ready = process_use(server.pid).cpu_seconds
        row = _last_of(client.stdout)
        used = process_use(server.pid)
        back = time.monotonic() - began
    return {
        **row,
        "ready_s": round(ready, 2),
        "all_back_s": round(back, 2),
        "msgs_s": round(row.get("published", 0) / back, 1),
        "server_cpu_s_per_M": round(1e6 * used.cpu_seconds / max(1, row.get("published", 0))),
        "server_cpu_s": round(used.cpu_seconds, 2),
        "server_cpu_s_after_ready": round(used.cpu_seconds - cpu_ready, 2),
        "rss_opened_MB": round(opened_mb),
        "server_rss_MB": round(used.resident_mb),
    }


def _last_of(output: IO[str]) -> Row:
    last: Row = {"error": "the client ended without a row"}
    for line in output:
        last = json.loads(line)
    return last
