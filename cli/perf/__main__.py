"""`pulsar-perf produce|consume|read|transaction`: Apache's names for the options there are; others are refused by name.

Exit code 0; 1 with the reason on stderr; 130 after Ctrl-C and 143 after SIGTERM, with the figures until then.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cli.admin.arguments import WrongUsage, parse
from cli.admin.table import options, positionals
from cli.client.__main__ import HELP, VERSION, Interrupted, reader_is_gone, with_signals
from cli.client_configuration import ClientConfiguration, ConfigurationError, load_client_configuration
from cli.command_line.closed_output import exit_status
from cli.command_line.option_texts import command_help
from cli.command_line.suggestions import did_you_mean
from cli.perf.options import ABOUT, ABSENT, COMMANDS, JSON, TEXTS
from cli.version import version_text

TOOL = "pulsar-perf"
_CONFIGURED = {
    "service-url": "broker_service_url",
    "auth_plugin": "auth_plugin",
    "auth-plugin": "auth_plugin",
    "auth-params": "auth_params",
    "trust-cert-file": "tls_trust_certs",
    "tls-allow-insecure": "tls_allow_insecure",
    "tls-enable-hostname-verification": "tls_hostname_verification",
    "listener-name": "listener_name",
}


def main(words: Sequence[str] | None = None, write: Callable[[str], None] = print) -> int:
    """The exit code."""
    words = sys.argv[1:] if words is None else words
    name = words[0] if words else ""
    if any(word in HELP for word in words) or name == "help":
        print(usage(next((word for word in words if word in COMMANDS), "")))
        return 0
    if name in (*VERSION, "version"):
        print(version_text(TOOL))
        return 0
    if name not in COMMANDS:
        told = f"Unknown command: '{name}'.{did_you_mean(name, COMMANDS)}" if name else "Missing command"
        told = f"{name}: not offered here: {ABSENT[name]}" if name in ABSENT else told
        print(f"{told}\n{usage('')}", file=sys.stderr)
        return 1
    return _run(name, words, write)


def _run(name: str, words: Sequence[str], write: Callable[[str], None]) -> int:
    from cli.client.errors import ClientError
    from cli.client.lasting import Notices

    command = COMMANDS[name]
    shown = (*options(command), JSON)
    try:
        values = parse(positionals(command), shown, words[1:], 1)
        for line in TEXTS.check(name, shown, values):
            print(f"{TOOL}: {line}", file=sys.stderr)
        module, _, function = command.run.partition(":")
        run = getattr(importlib.import_module(f"cli.perf.{module}"), function)
        notices = Notices(lambda line: print(f"{TOOL}: {line}", file=sys.stderr, flush=True))
        with_signals(lambda: run(configured(values), values, write, notices))
        return 0
    except WrongUsage as error:
        print(f"{error}\nUsage: {TOOL} {name} --help", file=sys.stderr)
    except BrokenPipeError:
        return reader_is_gone()
    except (ClientError, ConfigurationError, OSError) as error:
        print(f"{TOOL}: {error}", file=sys.stderr)
    except Interrupted as interrupted:
        return interrupted.exit_code
    return 1


def configured(values: Mapping[str, Any]) -> ClientConfiguration:
    """The file's, with what the command line says over it."""
    given = {field: values[key] for key, field in _CONFIGURED.items() if values.get(key) not in (None, "")}
    return load_client_configuration()._replace(**given)


def usage(name: str) -> str:
    """The help of one command, or of the tool."""
    if name:
        return command_help(TOOL, COMMANDS[name], ABOUT[name], (JSON,), TEXTS)
    lines = [f"Usage: {TOOL} COMMAND ...", "Commands (COMMAND --help tells their options):"]
    lines += [f"  {each:<14}{about}" for each, about in ABOUT.items()]
    return "\n".join([*lines, f"Not offered here: {', '.join(ABSENT)}"])


if __name__ == "__main__":
    sys.exit(exit_status(main))
