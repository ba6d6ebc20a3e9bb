"""The commands of `interpulse`: names, help, options, and the function that runs each. Imports no command's code."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cli.command_line import server_options, tool_options


class Command(NamedTuple):
    """One command of `interpulse`; `module:function` in `where` is imported when the command is called."""

    name: str
    about: str
    where: str
    options: Callable[[argparse.ArgumentParser], None] | None
    """Adds the options to a parser; None: the command reads its own words."""
    is_server: bool = False
    """Reads Apache's keys, also from the environment, and turns the cycle collector on again when ready."""

    def run(self, given: argparse.Namespace | Sequence[str]) -> int:
        """The exit code, of a call with the parsed options, or with the words of a command that reads its own."""
        return called(self.where, given)


def called(where: str, given: argparse.Namespace | Sequence[str]) -> int:
    module, _, function = where.partition(":")
    return int(getattr(importlib.import_module(module), function)(given))


SUPERVISOR = "cli.processes.main:run_processes"
"""Runs a server that was called with --processes."""

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "standalone",
            "broker, bookie and metadata in one process",
            "cli.standalone.main:run_standalone",
            server_options.standalone,
            is_server=True,
        ),
        Command(
            "zookeeper",
            "a real Apache ZooKeeper, for those who have none; needs Java and Maven",
            "cli.zookeeper.main:run_zookeeper",
            server_options.zookeeper,
        ),
        Command(
            "bookie",
            "a storage node for Apache's clients and brokers, registered in ZooKeeper",
            "cli.bookie.main:run_bookie",
            server_options.bookie,
            is_server=True,
        ),
        Command(
            "broker",
            "a broker of a cluster, on ZooKeeper and bookies",
            "cli.broker.main:run_broker",
            server_options.broker,
            is_server=True,
        ),
        Command(
            "proxy",
            "for clients that cannot reach the brokers themselves; holds no state",
            "cli.proxy.main:run_proxy",
            server_options.proxy,
            is_server=True,
        ),
        Command(
            "autorecovery",
            "notices lost bookies, and copies the ledgers that were on them",
            "cli.autorecovery.main:run_autorecovery",
            server_options.autorecovery,
            is_server=True,
        ),
        Command(
            "devcluster",
            "ZooKeeper, bookies and brokers on this machine in one terminal, to try things out",
            "cli.devcluster.main:run_devcluster",
            server_options.devcluster,
        ),
        Command(
            "initialize-cluster-metadata",
            "what a new cluster needs in ZooKeeper, as Apache's command of that name",
            "cli.initialize_cluster.main:run_initialize_cluster",
            tool_options.initialize_cluster,
        ),
        Command(
            "initialize-transaction-coordinator-metadata",
            "transaction coordinators for a cluster that has none, as Apache's",
            "cli.initialize_cluster.main:run_initialize_coordinators",
            tool_options.initialize_coordinators,
        ),
        Command(
            "export-metadata",
            "a stopped standalone's metadata as a file, to move it into a cluster",
            "cli.metadata_copy.main:run_export",
            tool_options.export_metadata,
        ),
        Command(
            "import-metadata",
            "what export-metadata wrote, into ZooKeeper",
            "cli.metadata_copy.main:run_import",
            tool_options.import_metadata,
        ),
        Command("doctor", "what is wrong here, how that is seen, and what to do", "cli.doctor.__main__:main", None),
        Command("completion", "a script that completes these commands in bash, zsh or fish", "cli.completion:main", None),
        Command("version", "version, commit, Python, kernels and protocol", "cli.version:main", None),
        Command(
            "config",
            "what a configuration file would do: check, diff, explain",
            "cli.configuration.main:run_config",
            tool_options.config,
        ),
        Command(
            "tokens",
            "make, show and check tokens, and the keys that sign them",
            "cli.tokens:run_tokens",
            tool_options.tokens,
        ),
    )
}
