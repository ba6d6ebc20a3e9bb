"""Help texts, from the tables."""

from collections.abc import Mapping, Sequence

from cli.admin.arguments import label
from cli.admin.groups import GROUPS, NOT_OFFERED, Group
from cli.admin.table import Command, Option, options, positionals

WIDTH = 24


def tool_usage(own: Sequence[Option]) -> str:
    lines = ["Usage: pulsar-admin [options] GROUP COMMAND [arguments]", "Options:", *_option_lines(own), "Groups:"]
    lines += [f"  {group.name:<{WIDTH}}{group.about}" for group in GROUPS.values() if not group.hidden]
    return "\n".join([*lines, f"Not offered here: {', '.join(sorted(NOT_OFFERED))}"])


def group_usage(group: Group, commands: Mapping[str, Command]) -> str:
    lines = [f"Usage: pulsar-admin {group.name} COMMAND [arguments]", group.about, "Commands:"]
    shown = [command for name, command in commands.items() if not command.hidden and name == command.name]
    return "\n".join([*lines, *(f"  {command.name} {synopsis(command)}".rstrip() for command in shown)])


def command_usage(group: Group, command: Command) -> str:
    heads = f"Usage: pulsar-admin {group.name} {command.name} {synopsis(command)}".rstrip()
    return "\n".join([heads, *_option_lines(options(command))])


def synopsis(command: Command) -> str:
    """Required options bare, the others in brackets."""
    words = [f"<{name.lower()}>" for name in positionals(command)]
    words += [label(option) if option.required else f"[{label(option)}]" for option in options(command)]
    return " ".join(words)


def _option_lines(shown: Sequence[Option]) -> list[str]:
    lines = []
    for option in shown:
        names = ", ".join(option.names)
        kind = "" if option.kind == "flag" else f"<{option.kind}>"
        note = " (required)" if option.required else f" (default: {option.default})" if option.default is not None else ""
        lines.append(f"  {names:<{WIDTH}} {kind}{note}".rstrip())
    return lines
