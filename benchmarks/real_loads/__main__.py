"""Real loads on Apache's standalone and on ours, in turn: `python -m benchmarks.real_loads --load LOAD_TOOL`.

    python -m benchmarks.real_loads --load LOAD_TOOL --only quiet --only workers      # these alone
    python -m benchmarks.real_loads --load LOAD_TOOL --short --ours-alone             # a quick look at ours

Each load first warms both servers, unmeasured, with a short run of its own kind; then it runs on Apache's, on ours, and so on
`--rounds` times. A row of JSON is printed for each run, a table at the end. LOAD_TOOL is the neutral load tool of the
comparisons; the client beside it is built with Go; Apache's jars come from the file of a classpath, or from Maven. On two cores
the whole of it takes about half an hour, `--short` a third of that; `--only` a minute and a half for each load.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.real_loads.loads import LOADS, Load, Servers
from benchmarks.real_loads.measuring import Measure, measured
from benchmarks.real_loads.servers import ApacheStandalone, OurStandalone, Server, tls_settings
from benchmarks.real_loads.table import markdown
from benchmarks.real_loads.tools import Row, Tools, built
from tests.clients.apache_broker_process import apache_classpath

SHORT = Measure(seconds=4, warm_seconds=1)
TRANSACTIONAL = {"transactionCoordinatorEnabled": "true"}


@contextmanager
def served(scratch: Path, tools: Tools, options: argparse.Namespace, kind: Servers) -> Iterator[list[Server]]:
    """Both standalones, or ours alone, started; the authority's certificate is `authority/authority.pem`."""
    _, tls = tls_settings(scratch / "authority")
    settings = {**tls, **(TRANSACTIONAL if kind is Servers.TRANSACTIONAL else {})}
    extra = dict(each.split("=", 1) for each in options.set)
    servers: list[Server] = [OurStandalone(scratch / "ours", {**settings, **extra})]
    if not options.ours_alone:
        classpath = options.classpath.read_text().strip() if options.classpath else apache_classpath(scratch)
        servers.insert(0, ApacheStandalone(scratch / "apache", settings, classpath, tools))
    with ExitStack() as running:
        for server in servers:
            running.callback(server.close)
            server.start()
        yield servers


def rows_of(loads: Sequence[Load], scratch: Path, tools: Tools, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of loads that are put on the same servers."""
    measure = Measure(SHORT.seconds, SHORT.warm_seconds, True) if options.short else Measure(options.seconds, 2)
    warm = Measure(options.warm, 0, is_short=True)
    with served(scratch, tools, options, loads[0].servers) as servers:
        authority = str(scratch / "authority" / "authority.pem")
        for load in loads:
            for server in servers if options.warm and not load.restarts else ():
                measured(load, server, tools, authority, warm)
            for turn in range(options.rounds):
                for server in servers:
                    row = measured(load, server, tools, authority, measure)
                    yield {**row, "round": turn + 1, "load_average": round(os.getloadavg()[0], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_loads", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", type=Path, required=True, metavar="PROGRAM", help="the neutral load tool")
    parser.add_argument("--classpath", type=Path, metavar="FILE", help="Apache's jars; without it Maven finds them")
    parser.add_argument("--only", action="append", choices=tuple(LOADS), help="this load alone; may be repeated")
    parser.add_argument("--short", action="store_true", help="four seconds, a tenth of the counts")
    parser.add_argument("--ours-alone", action="store_true", help="without Apache's standalone")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each load on each server")
    parser.add_argument("--seconds", type=float, default=8, help="of a timed load that is not short")
    parser.add_argument("--warm", type=float, default=6, help="seconds of the run that warms a server up; 0: none")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of our standalone")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="the rows are added to this file too")
    options = parser.parse_args()
    chosen = [load for name, load in LOADS.items() if name in (options.only or LOADS)]
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="real-loads-") as directory:
        scratch = Path(directory)
        tools = built(options.load, scratch)
        for kind in Servers:
            loads = [load for load in chosen if load.servers is kind]
            for row in rows_of(loads, scratch / kind.name, tools, options) if loads else ():
                found.append(row)
                print(json.dumps(row), flush=True)
                if options.rows:
                    with options.rows.open("a") as rows:
                        rows.write(json.dumps(row) + "\n")
    print(markdown(found))


if __name__ == "__main__":
    main()
