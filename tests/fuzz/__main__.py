"""`python -m tests.fuzz --seeds 100 --from 0`: fuzzes a standalone of its own; prints the findings and a summary."""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from .admin_fuzz import AdminFuzz
from .fuzz import fuzz, summary
from .watched_server import WatchedServer


def main() -> int:
    parser = argparse.ArgumentParser(description="A fuzz of the client protocol against a standalone of its own.")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a setting of the standalone: key=value")
    parser.add_argument("--errors", action="store_true", help="also what was answered, and how often")
    parser.add_argument("--trace", action="store_true", help="all that is sent and heard")
    parser.add_argument("--admin", action="store_true", help="the admin REST instead of the client protocol")
    parser.add_argument("--keep", help="a directory for the server's data and log, which stays")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if asked.trace else logging.WARNING, format="%(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="interpulse-fuzz-") as scratch:
        server = WatchedServer(Path(asked.keep or scratch), tuple(asked.set))
        seeds = range(asked.first, asked.first + asked.seeds)
        if asked.admin:
            return _fuzz_admin(server, seeds)
        with server.process:
            report = asyncio.run(fuzz(server, server.start(), seeds))
            report.findings += [(-1, each) for each in server.said()]
            code = server.process.stop()
    print("\n".join(summary(report)))
    if asked.errors:
        print("\n".join(f"{count:7} {what} {code}: {text!r}" for (what, code, text), count in sorted(report.errors.items())))
    if code:
        print(f"the server ended with {code}")
    return 1 if report.findings or code else 0


def _fuzz_admin(server: WatchedServer, seeds: range) -> int:
    with server.process:
        host, _, web_port = server.start()
        report = AdminFuzz(host, web_port).run(seeds)
        report.findings += server.said(100)
        code = server.process.stop()
    print(f"{report.requests} requests; statuses {dict(sorted(report.statuses.items()))}")
    print("\n".join([*report.findings, f"{len(report.findings)} findings"]))
    return 1 if report.findings or code else 0


if __name__ == "__main__":
    sys.exit(main())
