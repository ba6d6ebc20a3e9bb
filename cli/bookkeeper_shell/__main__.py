"""`bookkeeper`: `shell [options] COMMAND ...`, `bookie` and `autorecovery`. Imports a command's code when it is called.

Exit codes: 0; what the command's table says when it could not do it; 255 for wrong usage, as Apache's BookieShell (-1).
"""

import asyncio
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.bookkeeper_shell.context import LEDGER_ID_FORMATS, CommandFailed, Shell
from cli.bookkeeper_shell.options import HELP, Option, WrongUsage, parse, parse_leading
from cli.bookkeeper_shell.table import COMMANDS, FAILED, REFUSED, Command
from cli.command_line.closed_output import exit_status
from cli.command_line.suggestions import did_you_mean
from cli.configuration.loading import CONF, load_configuration
from cli.version import version_text
from ports.settings import BadSetting

_COMMANDS = ("shell", "bookie", "autorecovery", "help", "version")
SHELL_USAGE = (
    "Usage: bookkeeper shell [-conf FILE] [--set KEY=VALUE] [-ledgeridformat long|hex|uuid] [-entryformat string|hex] "
    "COMMAND [options]"
)
USAGE = f"""{SHELL_USAGE}
       bookkeeper bookie | autorecovery [--conf FILE] [--set KEY=VALUE] [--json-ready FILE]
The configuration is conf/bookkeeper.conf, or what BOOKIE_CONF names."""
ENTRY_FORMATS = ("string", "hex")
_OWN = (
    Option("conf", takes="FILE"),
    Option("set", takes="KEY=VALUE"),
    Option("ledgeridformat", takes="FORMAT"),
    Option("entryformat", takes="FORMAT"),
    HELP,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    match words[:1]:
        case ["shell"]:
            return run_shell(words[1:])
        case ["bookie" | "autorecovery"]:
            return _serve(words)
        case ["help"] | ["-h"] | ["--help"]:
            print(USAGE)
            return 0
        case ["version"] | ["-v"] | ["--version"]:
            print(version_text("bookkeeper"))
            return 0
        case [name]:
            print(f"Unknown command {name}.{did_you_mean(name, _COMMANDS)}", file=sys.stderr)
    print(USAGE, file=sys.stderr)
    return FAILED


def _serve(words: Sequence[str]) -> int:
    """Runs `interpulse`, with the configuration where Apache's command looks for it."""
    from cli.__main__ import main as pulsar

    name, *rest = ["--config" if word in ("-conf", "--conf") else word for word in words]
    return pulsar([name, *(() if "--config" in rest else ("--config", _configuration_file())), *rest])


def _configuration_file() -> str:
    return os.environ.get("BOOKIE_CONF") or str(CONF / "bookkeeper.conf")


def run_shell(words: Sequence[str]) -> int:
    """Runs a command. Words before the command's name are the shell's, words after it the command's."""
    try:
        given, rest = parse_leading(_OWN, words)
        own = dict(given)
        name, *words = rest or ["help"]
        if name == "help" or HELP.short in own:
            return _help(words, 0 if rest or HELP.short in own else FAILED)
        if name in REFUSED:
            print(f"{name}: {REFUSED[name]}", file=sys.stderr)
            return 1
        command = COMMANDS.get(name)
        if command is None:
            print(f"ERROR: Unknown command {name}.{did_you_mean(name, COMMANDS)}", file=sys.stderr)
            return _help([], FAILED)
        return _run(command, _shell(own, [text for short, text in given if short == "set"]), words)
    except WrongUsage as error:
        print(f"{error}\n{SHELL_USAGE}", file=sys.stderr)
    except BrokenPipeError:  # the reader has closed the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (BadSetting, OSError) as error:
        print(f"bookkeeper shell: {error}", file=sys.stderr)
    return FAILED


def _shell(own: Mapping[str, str], sets: Sequence[str]) -> Shell:
    file = Path(own.get("conf") or _configuration_file())
    ledger_ids, entries = own.get("ledgeridformat", "long"), own.get("entryformat", "string")
    if ledger_ids not in LEDGER_ID_FORMATS:
        raise WrongUsage(f"-ledgeridformat {ledger_ids}: expected {', '.join(LEDGER_ID_FORMATS)}")
    if entries not in ENTRY_FORMATS:
        raise WrongUsage(f"-entryformat {entries}: expected {', '.join(ENTRY_FORMATS)}")
    return Shell(load_configuration([(str(file), file.read_text())], sets), str(file), ledger_ids, entries)


def _run(command: Command, shell: Shell, words: Sequence[str]) -> int:
    from bookie.errors import BookieStartError
    from bookkeeper.ledgers import LedgerError
    from cli.bookkeeper_cluster.cluster import ClusterFailed
    from metadata.store import MetadataError
    from wire.bookie.codes import BookieError

    failures = (CommandFailed, ClusterFailed, BookieStartError, LedgerError, MetadataError, BookieError, BadSetting, OSError)
    has_own_h = any(option.short == "h" for option in command.options)
    options = (*command.options, Option("", "help") if has_own_h else HELP)
    try:
        given = parse(options, words)
        if given.has(options[-1].short):
            print(_usage(command))
            return 0
        module, _, function = command.where.partition(":")
        run = getattr(importlib.import_module(f"cli.bookkeeper_shell.commands.{module}"), function)
        code: int = asyncio.run(run(shell, given))
        return code
    except WrongUsage as error:
        print(f"{command.name}: {error}\n{_usage(command)}", file=sys.stderr)
        return error.code
    except BrokenPipeError:
        raise
    except failures as error:
        print(f"{command.name}: {error}", file=sys.stderr)
        return command.failure


def _usage(command: Command) -> str:
    lines = [f"{command.name}: {command.what}", f"Usage: {command.name} [options] {command.arguments}".rstrip()]
    for option in (*command.options, HELP if "h" not in {each.short for each in command.options} else Option("-help")):
        lines.append(f"    {option.label}")
        if option.note:
            lines.append(f"        {option.note}")
    return "\n".join(lines)


def _help(words: Sequence[str], code: int) -> int:
    """Prints the help of one command, or of all; on stderr after wrong usage."""
    out = sys.stdout if code == 0 else sys.stderr
    if words and words[0] in REFUSED:
        print(f"{words[0]}: {REFUSED[words[0]]}", file=out)
        return code
    if words and words[0] in COMMANDS:
        print(_usage(COMMANDS[words[0]]), file=out)
        return code
    if words:
        print(f"Unknown command {words[0]}.{did_you_mean(words[0], COMMANDS)}", file=sys.stderr)
        return _help([], FAILED)
    print(f"{USAGE}\nwhere COMMAND is one of:", file=out)
    for name in sorted(COMMANDS):
        print(f"    {name:<28} {COMMANDS[name].what}", file=out)
    print(f"Not here, and why (help COMMAND): {', '.join(sorted(REFUSED))}" if REFUSED else "", file=out)
    return code


if __name__ == "__main__":
    sys.exit(exit_status(main))
