"""The options of `interpulse devcluster`. Imports nothing heavy."""

import argparse

from cli.data_place import DATA_HELP

COMMAND = "devcluster"
BROKERS = 2
BOOKIES = 3
NETWORK = "127.0.0"


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """To start a cluster, and to say something to the one that runs on the same data directory."""
    parser = commands.add_parser(
        COMMAND, help="ZooKeeper, bookies and brokers on this machine in one terminal, to try things out"
    )
    add = parser.add_argument
    add("--brokers", type=int, default=BROKERS, metavar="COUNT", help=f"default: {BROKERS}")
    add("--bookies", type=int, default=BOOKIES, metavar="COUNT", help=f"default: {BOOKIES}")
    add("--proxy", action="store_true", help="a proxy too")
    add("--data", "--data-dir", metavar="DIR", help=f"where everything is kept ({DATA_HELP.format('devcluster')})")
    add("--network", default=NETWORK, metavar="A.B.C", help=f"addresses are A.B.C.1 and so on (default: {NETWORK})")
    add("--broker-set", action="append", default=[], metavar="KEY=VALUE", help="for all brokers, may be repeated")
    add("--bookie-set", action="append", default=[], metavar="KEY=VALUE", help="for all bookies, may be repeated")
    add("--json-ready", metavar="FILE", help="write serviceUrl, webServiceUrl, metadataStoreUrl, pid and members once ready")
    ask = parser.add_mutually_exclusive_group()
    ask.add_argument("--kill", metavar="NAME", help="of the cluster that runs on this data: kill -9, such as broker-1")
    ask.add_argument("--stop", metavar="NAME", help="the same, but as one stops a server")
    ask.add_argument("--restart", metavar="NAME", help="stop it if it runs, and start it")
    ask.add_argument(
        "--add-bookie", action="store_true", help="one more bookie, at once and whenever this data is started again"
    )
    ask.add_argument("--status", action="store_true", help="who runs")
