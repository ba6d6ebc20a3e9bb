"""The tool itself: finds the command, asks the server, prints; what was wrong goes to stderr and makes the exit code 1."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.admin.arguments import WrongUsage, parse
from cli.admin.groups import GROUPS, NOT_OFFERED, Group
from cli.admin.output import rendered
from cli.admin.request import built, filled_sentence
from cli.admin.table import Command, Option, options, positionals
from cli.admin.usage import command_usage, group_usage, tool_usage
from cli.client_configuration import ClientConfiguration, ConfigurationError, load_client_configuration
from cli.command_line.suggestions import did_you_mean

if TYPE_CHECKING:
    from cli.admin.context import Asking, Context

_TEXT, _FLAG = "string", "flag"
HELP = Option("help", ("-h", "--help"), _FLAG, False, None)
VERSION_OPTION = Option("version", ("-v", "--version"), _FLAG, False, None)
OWN_OPTIONS = (
    Option("admin-url", ("--admin-url",), _TEXT, False, None),
    Option("auth-plugin", ("--auth-plugin",), _TEXT, False, None),
    Option("auth-params", ("--auth-params",), _TEXT, False, None),
    Option("request-timeout", ("--request-timeout",), "int", False, "300"),
    Option("tls-allow-insecure", ("--tls-allow-insecure",), _FLAG, False, None),
    Option("tls-trust-cert-path", ("--tls-trust-cert-path",), _TEXT, False, None),
    Option("tls-enable-hostname-verification", ("--tls-enable-hostname-verification",), _FLAG, False, None),
    Option("tls-provider", ("--tls-provider",), _TEXT, False, None),
    Option("json", ("--json",), _FLAG, False, None),
    HELP,
    VERSION_OPTION,
)
_CONFIGURED = {
    "admin-url": "web_service_url",
    "auth-plugin": "auth_plugin",
    "auth-params": "auth_params",
    "tls-trust-cert-path": "tls_trust_certs",
    "tls-allow-insecure": "tls_allow_insecure",
    "tls-enable-hostname-verification": "tls_hostname_verification",
}


class Finished(Exception):
    """The end of the tool: a text for stdout (code 0) or stderr."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class _Call(NamedTuple):
    """A command line understood."""

    own: Mapping[str, Any]
    command: Command
    values: Mapping[str, Any]


def main(words: Sequence[str]) -> int:
    """The exit code."""
    try:
        call = understood(words)
        return _run(call, _configuration(call.own))
    except Finished as end:
        print(end, file=sys.stdout if end.code == 0 else sys.stderr)
        return end.code
    except (ConfigurationError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"pulsar-admin: {error}", file=sys.stderr)
        return 1


def understood(words: Sequence[str]) -> _Call:
    """The call; Finished for help, versions and wrong usage."""
    count = _own_words(words)
    try:
        own = parse((), OWN_OPTIONS, words[:count])
    except WrongUsage as error:
        raise Finished(f"{error}\n{tool_usage(OWN_OPTIONS)}", 1) from None
    _help_or_version(own, tool_usage(OWN_OPTIONS))
    if count == len(words):
        raise Finished(f"Missing required subcommand\n{tool_usage(OWN_OPTIONS)}", 1)
    name = words[count]
    if name in NOT_OFFERED:
        raise Finished(f"{name}: not offered here: {NOT_OFFERED[name]}", 1)
    group = GROUPS.get(name)
    if group is None:
        near = did_you_mean(name, (each for each, about in GROUPS.items() if not about.hidden))
        raise Finished(f"Unmatched argument at index {count}: '{name}'.{near}\n{tool_usage(OWN_OPTIONS)}", 1)
    return _in_group(own, group, words, count + 1)


def _own_words(words: Sequence[str]) -> int:
    """Count of the words before the group's name."""
    taking = {name for option in OWN_OPTIONS if option.kind != _FLAG for name in option.names}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in taking else 1
    return min(at, len(words))


def _in_group(own: Mapping[str, Any], group: Group, words: Sequence[str], at: int) -> _Call:
    commands: dict[str, Command] = {}
    for each in group.commands():
        commands |= dict.fromkeys((each.name, *each.aliases), each)
    usage = group_usage(group, commands)
    if at == len(words):
        raise Finished(f"Missing required subcommand\n{usage}", 1)
    if words[at] in HELP.names or words[at] in VERSION_OPTION.names:
        _help_or_version({"help": words[at] in HELP.names, "version": True}, usage)
    command = commands.get(words[at])
    if command is None:
        raise Finished(f"Unmatched argument at index {at}: '{words[at]}'.{did_you_mean(words[at], commands)}\n{usage}", 1)
    return _Call(own, command, _values(group, command, words[at + 1 :], at + 1))


def _values(group: Group, command: Command, words: Sequence[str], at: int) -> dict[str, Any]:
    own = options(command)
    taken = {name for option in own for name in option.names}
    extra = [
        option._replace(names=tuple(name for name in option.names if name not in taken)) for option in (HELP, VERSION_OPTION)
    ]
    usage = command_usage(group, command)
    asked_for_help = any(word in extra[0].names for word in words)
    if asked_for_help or any(word in extra[1].names for word in words):
        _help_or_version({"help": asked_for_help, "version": True}, usage)
    try:
        values = parse(positionals(command), own, words, at)
        if command.one_of and sum(bool(values.get(key)) for key in command.one_of) != 1:
            raise WrongUsage(f"Need to specify either {' or '.join(f'--{key}' for key in command.one_of)}")
        if len({values.get(key) is None for key in command.together}) > 1:
            raise WrongUsage(f"{' and '.join(command.together)} must be provided together.")
        return values
    except WrongUsage as error:
        raise Finished(f"{error}\n{usage}", 1) from None


def _help_or_version(given: Mapping[str, Any], usage: str) -> None:
    if given.get("help"):
        raise Finished(usage, 0)
    if given.get("version"):
        from cli.version import version_text

        raise Finished(version_text("pulsar-admin"), 0)


def _configuration(own: Mapping[str, Any]) -> ClientConfiguration:
    """The file's, with what the command line says over it."""
    over = {field: own[key] for key, field in _CONFIGURED.items() if own.get(key)}
    return load_client_configuration()._replace(**over)


def _run(call: _Call, configuration: ClientConfiguration) -> int:
    from cli.admin.http import AdminConnection

    connection = AdminConnection(configuration, float(call.own["request-timeout"]))
    try:
        return perform(call, connection, print)
    finally:
        connection.close()
        sys.stdout.flush()


def perform(call: _Call, connection: "Asking", write: Callable[[str], None]) -> int:
    """Does it; what was wrong is told on stderr. The exit code."""
    from cli.admin.context import CommandFailed, Context
    from cli.admin.http import Refused, Unreachable

    context = Context(connection, call.values, write, bool(call.own["json"]))
    try:
        if call.command.run:
            module, _, function = call.command.run.partition(":")
            getattr(importlib.import_module(f"cli.admin.commands.{module}"), function)(context)
        else:
            _plainly(call.command, context)
        return 0
    except (Refused, Unreachable, CommandFailed, WrongUsage) as error:
        print(f"{error}\n\nReason: {error}", file=sys.stderr)
        if isinstance(error, Refused):
            _advise(str(error))
        return 1


def _advise(reason: str) -> None:
    """A line on what to do, where a tenant, namespace, topic or right is what is missing."""
    from cli.connection_advice import name_advice

    advice = name_advice(reason)
    if advice:
        print(f"Remedy: {advice}", file=sys.stderr)


def _plainly(command: Command, context: "Context") -> None:
    value = context.ask(built(command, context.values))
    if context.as_json:
        context.write(json.dumps(value, ensure_ascii=False))
        return
    form = command.output
    if form.startswith("says:"):
        form = "says:" + filled_sentence(form.removeprefix("says:"), context.values)
    elif form.startswith("gson") and context.values.get("indent"):
        form = "gson-wide"
    for line in rendered(form, value):
        context.write(line)
