"""Options of the commands that serve. Imports nothing that takes time."""

import argparse

from cli.data_place import DATA_HELP

BROKERS = 2
BOOKIES = 3
NETWORK = "127.0.0"
"""Defaults of a devcluster."""
PROCESSES, PROCESS_OF = "--processes", "--process-of"


def standalone(parser: argparse.ArgumentParser) -> None:
    _data_directory(parser, "standalone")
    _configured(parser, "instead of conf/standalone.conf; Apache's keys", "brokerServiceUrl, webServiceUrl")
    parser.add_argument(
        "--throwaway", action="store_true", help="delete the data at the end; in a new temporary directory without --data-dir"
    )
    parser.add_argument("--end-with", type=int, metavar="PID", help="stop when the process with this id has ended")
    parser.add_argument(PROCESSES, metavar="N", help=argparse.SUPPRESS)  # refused, with what there is in its place
    _from_environment(parser)


def zookeeper(parser: argparse.ArgumentParser) -> None:
    _data_directory(parser, "zookeeper")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of zoo.cfg, or myid")
    parser.add_argument("--json-ready", metavar="FILE", help="write metadataStoreUrl and the server's pid there once ready")


def bookie(parser: argparse.ArgumentParser) -> None:
    _configured(parser, "Apache's bookkeeper.conf", "bookieId, bookiePort")
    _processes(parser)
    _from_environment(parser)


def broker(parser: argparse.ArgumentParser) -> None:
    _configured(parser, "Apache's broker.conf", "brokerServiceUrl, webServiceUrl")
    _processes(parser)
    _from_environment(parser)


def proxy(parser: argparse.ArgumentParser) -> None:
    _configured(parser, "Apache's proxy.conf", "serviceUrl, webServiceUrl")
    _from_environment(parser)


def autorecovery(parser: argparse.ArgumentParser) -> None:
    _configured(parser, "Apache's bookkeeper.conf", "bookieId")
    _from_environment(parser)


def devcluster(parser: argparse.ArgumentParser) -> None:
    """Options that start a cluster, and options that speak to the one that runs on the same data directory."""
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


def _data_directory(parser: argparse.ArgumentParser, command: str) -> None:
    where = f"where everything is kept ({DATA_HELP.format(command)})"
    parser.add_argument("--data-dir", "--data", metavar="DIR", help=where)


def _configured(parser: argparse.ArgumentParser, file: str, ready: str) -> None:
    parser.add_argument("--config", metavar="FILE", help=file)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    parser.add_argument("--json-ready", metavar="FILE", help=f"write {ready} and pid there once ready")


def _processes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(PROCESSES, metavar="N", help="so many on this machine, one for each core: docs/more-cores.md")
    parser.add_argument(PROCESS_OF, help=argparse.SUPPRESS)


def _from_environment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from-env", action="store_true", help="take KEY=VALUE from the environment; PULSAR_PREFIX_KEY=VALUE always is"
    )
