"""`interpulse COMMAND`: parses the command line and hands over. Imports a command's code only when it is asked for."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from cli.command_line import autorecovery_options, config_options, devcluster_options, own_parser_commands, tokens_options
from cli.command_line.initialize_cluster_options import COMMAND, COORDINATOR_COMMAND, add_command, add_coordinator_command
from cli.command_line.metadata_copy_options import EXPORT, IMPORT, add_commands
from cli.command_line.processes_options import STANDALONE_REFUSAL, add_options
from cli.command_line.suggesting_parser import SuggestingParser
from cli.data_place import DATA_HELP
from cli.serving import interpreter

_SERVERS = {
    "bookie": ("cli.bookie.main", "run_bookie"),
    "broker": ("cli.broker.main", "run_broker"),
    "proxy": ("cli.proxy.main", "run_proxy"),
    autorecovery_options.COMMAND: ("cli.autorecovery.main", "run_autorecovery"),
}
"""Module and function, which is given --config, --set and --json-ready."""
_PREPARING = {COMMAND: "run_initialize_cluster", COORDINATOR_COMMAND: "run_initialize_coordinators"}
"""Those that prepare a cluster's metadata."""
_CONFIGURED = ("standalone", *_SERVERS)
"""Servers: they read Apache's keys, and turn the cycle collector on again when they are ready."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 after a clean stop, 1 for a failure told on stderr, 2 for wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    if list(words[:1]) in (["-v"], ["--version"]):
        words = ["version", *words[1:]]
    if own_parser_commands.is_one(words):
        return own_parser_commands.run(words)
    return _run(_parser().parsed(words))


def _run(options: argparse.Namespace) -> int:
    if options.command in _CONFIGURED and not _take_environment(options):
        return 1
    if options.command == "zookeeper":
        from cli.zookeeper.main import run_zookeeper

        return run_zookeeper(options.data_dir, options.set, options.json_ready)
    if options.command in _SERVERS or getattr(options, "processes", None) is not None:
        return _run_server(options)
    if options.command == devcluster_options.COMMAND:
        from cli.devcluster.main import run_devcluster

        return run_devcluster(options)
    if options.command == config_options.COMMAND:
        from cli.configuration.main import run_config

        return run_config(options)
    if options.command == tokens_options.COMMAND:
        from cli.tokens import run_tokens

        return run_tokens(options)
    if options.command in _PREPARING:
        run = getattr(importlib.import_module("cli.initialize_cluster.main"), _PREPARING[options.command])
        return int(run(options))
    if options.command in (EXPORT, IMPORT):
        from cli.metadata_copy.main import run_export, run_import

        if options.command == EXPORT:
            return run_export(options.data_dir, options.file)
        return run_import(options.file, options.metadata_store, options.data_dir)
    from cli.standalone.main import run_standalone

    given = (options.data_dir, options.config, options.set, options.json_ready)
    return run_standalone(*given, options.throwaway, options.end_with)


def _run_server(options: argparse.Namespace) -> int:
    """One, or with --processes several, or one of those."""
    if getattr(options, "processes", None) is not None:
        if options.command == "standalone":
            print(f"interpulse standalone: {STANDALONE_REFUSAL}", file=sys.stderr)
            return 1
        from cli.processes.main import run_processes

        return run_processes(options)
    module, function = _SERVERS[options.command]
    given = [options.config, options.set, options.json_ready]
    if getattr(options, "process_of", None) is not None:
        from cli.processes.main import member_of

        member = member_of(options.command, options.process_of)
        if member is None:
            return 1
        given.append(member)
    return int(getattr(importlib.import_module(module), function)(*given))


def _take_environment(options: argparse.Namespace) -> bool:
    """Puts what the environment sets before what the command line does; False: refused, and told."""
    if not options.from_env and not any(name.startswith("PULSAR_PREFIX_") for name in os.environ):
        return True
    from cli.configuration.environment import environment_settings
    from ports.settings import BadSetting

    try:
        options.set[:0] = environment_settings(os.environ, with_plain_names=options.from_env)
    except BadSetting as error:
        print(f"interpulse {options.command}: {error}", file=sys.stderr)
        return False
    return True


def _parser() -> SuggestingParser:
    parser = SuggestingParser(prog="interpulse", description="Interpulse: Apache Pulsar's protocol, in Python.")
    commands: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(  # type: ignore[assignment]  # SuggestingParser is one
        required=True, metavar="COMMAND", dest="command"
    )
    standalone = commands.add_parser("standalone", help="broker, bookie and metadata in one process")
    standalone.add_argument(
        "--data-dir", "--data", metavar="DIR", help=f"where everything is kept ({DATA_HELP.format('standalone')})"
    )
    standalone.add_argument("--config", metavar="FILE", help="instead of conf/standalone.conf; Apache's keys")
    standalone.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    standalone.add_argument(
        "--json-ready", metavar="FILE", help="write brokerServiceUrl, webServiceUrl and pid there once ready"
    )
    standalone.add_argument(
        "--throwaway", action="store_true", help="delete the data at the end; in a new temporary directory without --data-dir"
    )
    standalone.add_argument("--end-with", type=int, metavar="PID", help="stop when the process with this id has ended")
    zookeeper = commands.add_parser("zookeeper", help="a real Apache ZooKeeper, for those who have none; needs Java and Maven")
    zookeeper.add_argument(
        "--data-dir", "--data", metavar="DIR", help=f"where everything is kept ({DATA_HELP.format('zookeeper')})"
    )
    zookeeper.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of zoo.cfg, or myid")
    zookeeper.add_argument("--json-ready", metavar="FILE", help="write metadataStoreUrl and the server's pid there once ready")
    bookie = commands.add_parser("bookie", help="a storage node for Apache's clients and brokers, registered in ZooKeeper")
    bookie.add_argument("--config", metavar="FILE", help="Apache's bookkeeper.conf")
    bookie.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    bookie.add_argument("--json-ready", metavar="FILE", help="write bookieId, bookiePort and pid there once ready")
    broker = commands.add_parser("broker", help="a broker of a cluster, on ZooKeeper and bookies")
    broker.add_argument("--config", metavar="FILE", help="Apache's broker.conf")
    broker.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    broker.add_argument("--json-ready", metavar="FILE", help="write brokerServiceUrl, webServiceUrl and pid there once ready")
    proxy = commands.add_parser("proxy", help="for clients that cannot reach the brokers themselves; holds no state")
    proxy.add_argument("--config", metavar="FILE", help="Apache's proxy.conf")
    proxy.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    proxy.add_argument("--json-ready", metavar="FILE", help="write serviceUrl, webServiceUrl and pid there once ready")
    autorecovery_options.add_command(commands)
    devcluster_options.add_command(commands)
    add_command(commands)
    add_coordinator_command(commands)
    add_commands(commands)
    own_parser_commands.add_commands(commands)
    config_options.add_command(commands)
    tokens_options.add_command(commands)
    add_options(commands.choices)
    for name in _CONFIGURED:
        commands.choices[name].add_argument(
            "--from-env", action="store_true", help="take KEY=VALUE from the environment; PULSAR_PREFIX_KEY=VALUE always is"
        )
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in _CONFIGURED:
        interpreter.off_while_starting()
    sys.exit(main())
