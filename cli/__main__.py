"""`interpulse COMMAND`: parses the command line and hands over. Imports a command's code only when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence

from cli.command_line.closed_output import exit_status
from cli.command_line.commands import COMMANDS, SUPERVISOR, called
from cli.command_line.suggesting_parser import SuggestingParser
from cli.serving import interpreter


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 after a clean stop, 1 for a failure told on stderr, 2 for wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-v"], ["--version"]):
        words = ["version", *words[1:]]
    command = COMMANDS.get(words[0]) if words else None
    if command is not None and command.options is None:
        return command.run(words[1:])
    options = server_parser().parsed(words)
    command = COMMANDS[options.command]
    if command.is_server and not _take_environment(options):
        return 1
    if getattr(options, "processes", None) is not None:
        return called(SUPERVISOR, options)
    return command.run(options)


def _take_environment(options: argparse.Namespace) -> bool:
    """Puts the settings of the environment before those of the command line; False: refused, and told on stderr."""
    if not options.from_env and not any(name.startswith("PULSAR_PREFIX_") for name in os.environ):
        return True
    from cli.configuration.loading import environment_settings
    from ports.settings import BadSetting

    try:
        options.set[:0] = environment_settings(os.environ, with_plain_names=options.from_env)
    except BadSetting as error:
        print(f"interpulse {options.command}: {error}", file=sys.stderr)
        return False
    return True


def server_parser() -> SuggestingParser:
    parser = SuggestingParser(prog="interpulse", description="Interpulse: Apache Pulsar's protocol, in Python.")
    commands: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(  # type: ignore[assignment]  # SuggestingParser is one
        required=True, metavar="COMMAND", dest="command"
    )
    for command in COMMANDS.values():
        added = commands.add_parser(command.name, help=command.about, add_help=command.options is not None)
        if command.options is not None:
            command.options(added)
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in COMMANDS and COMMANDS[sys.argv[1]].is_server:
        interpreter.off_while_starting()
    sys.exit(exit_status(main))
