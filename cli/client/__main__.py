"""`pulsar-client [options] produce|consume|read ...`.

Exit code 0; 1 with the reason on stderr; 130 after Ctrl-C and 143 after SIGTERM, with what was done until then.
"""

import importlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.admin.arguments import WrongUsage, parse
from cli.admin.table import Option, options, positionals
from cli.client.commands import ABOUT, COMMANDS, JSON, OWN, TEXTS
from cli.client_configuration import ClientConfiguration, ConfigurationError, load_client_configuration
from cli.command_line.closed_output import exit_status
from cli.command_line.option_texts import command_help, option_lines
from cli.command_line.suggestions import did_you_mean
from cli.version import version_text

if TYPE_CHECKING:
    from cli.client.consume import Tally

TOOL = "pulsar-client"
HELP, VERSION = ("-h", "--help"), ("-v", "--version")
_DONE = {"produce": "successfully produced", "consume": "successfully consumed", "read": "successfully read"}
_CONFIGURED = {
    "url": "broker_service_url",
    "auth-plugin": "auth_plugin",
    "auth-params": "auth_params",
    "tlsTrustCertsFilePath": "tls_trust_certs",
    "listener-name": "listener_name",
}


def main(words: Sequence[str] | None = None) -> int:
    """The exit code."""
    words = sys.argv[1:] if words is None else words
    at = own_words(words, OWN)
    name = words[at] if at < len(words) else ""
    if any(word in HELP for word in words) or name == "help":
        print(usage(next((word for word in words if word in COMMANDS), "")))
        return 0
    if any(word in VERSION for word in words[: at + 1]):
        print(version_text(TOOL))
        return 0
    if name not in COMMANDS:
        told = f"Unknown command: '{name}'.{did_you_mean(name, COMMANDS)}" if name else "Missing command"
        print(f"{told}\n{usage('')}", file=sys.stderr)
        return 1
    return _run(name, words, at)


def own_words(words: Sequence[str], own: Sequence[Option]) -> int:
    """Count the words before the command's name."""
    taking = {name for option in own if option.kind != "flag" for name in option.names}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in taking else 1
    return min(at, len(words))


def _run(name: str, words: Sequence[str], at: int) -> int:
    from cli.client.consume import Tally
    from cli.client.errors import ClientError

    tally = Tally()
    try:
        own = parse((), OWN, words[:at])
        command = COMMANDS[name]
        shown = (*options(command), JSON)
        values = parse(positionals(command), shown, words[at + 1 :], at + 1)
        for line in TEXTS.check(name, (*OWN, *shown), {**own, **values}):
            print(f"{TOOL}: {line}", file=sys.stderr)
        with_signals(lambda: _act(name, configured(own), values, tally))
        _summary(name, tally)
        return 0
    except WrongUsage as error:
        print(f"{error}\nUsage: {TOOL} {name} --help", file=sys.stderr)
    except BrokenPipeError:
        return reader_is_gone()
    except (ClientError, ConfigurationError, OSError) as error:
        if tally.count:
            _summary(name, tally)
        print(f"{TOOL}: {error}", file=sys.stderr)
    except Interrupted as interrupted:
        _summary(name, tally)
        return interrupted.exit_code
    return 1


def reader_is_gone() -> int:
    """The program behind a pipe has had enough (`| head`): that is no failure. The exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def configured(own: Mapping[str, Any]) -> ClientConfiguration:
    return load_client_configuration()._replace(**{field: own[key] for key, field in _CONFIGURED.items() if own.get(key)})


class Interrupted(BaseException):
    """Ctrl-C, or SIGTERM; not an Exception, so that nothing on its way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def with_signals(act: Callable[[], None]) -> None:
    """Does it; SIGINT and SIGTERM end it with Interrupted."""

    def interrupt(number: int, _: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        act()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _act(name: str, configuration: ClientConfiguration, values: Mapping[str, Any], tally: "Tally") -> None:
    from cli.client.lasting import Notices

    module, _, function = COMMANDS[name].run.partition(":")
    run = getattr(importlib.import_module(f"cli.client.{module}"), function)
    notices = Notices(lambda line: print(f"{TOOL}: {line}", file=sys.stderr, flush=True))
    run(configuration, values, lambda line: print(line, flush=True), notices, tally)


def _summary(name: str, tally: "Tally") -> None:
    """Messages are the output of the other two, so that their summary goes to stderr."""
    print(f"{tally.count} messages {_DONE[name]}", file=sys.stdout if name == "produce" else sys.stderr, flush=True)
    if tally.resent:
        print(
            f"{TOOL}: {tally.resent} messages were sent again after a connection broke; where the broker does not "
            "deduplicate, some may be stored twice",
            file=sys.stderr,
        )


def usage(name: str) -> str:
    """The help of one command, or of the tool."""
    if name:
        return command_help(f"{TOOL} [--url URL ...]", COMMANDS[name], ABOUT[name], (JSON,), TEXTS)
    lines = [f"Usage: {TOOL} [options] COMMAND ...", "Commands (COMMAND --help tells their options):"]
    lines += [f"  {each:<10}{about}" for each, about in ABOUT.items()]
    return "\n".join([*lines, "Options, also from conf/client.conf:", *option_lines("", OWN, TEXTS)])


if __name__ == "__main__":
    sys.exit(exit_status(main))
