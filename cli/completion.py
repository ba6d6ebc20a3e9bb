"""`interpulse completion bash|zsh|fish`: a script that completes the command lines, written from their tables.

`. <(interpulse completion bash)`. It completes names of groups, commands and options, and asks no server.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from cli.admin.groups import GROUPS
from cli.admin.table import Command, Option, options
from cli.admin.tool import OWN_OPTIONS
from cli.bookkeeper_shell.table import COMMANDS as SHELL_COMMANDS
from cli.client.commands import COMMANDS as CLIENT_COMMANDS
from cli.client.commands import OWN
from cli.client.commands import TEXTS as CLIENT_TEXTS
from cli.command_line.option_texts import OptionTexts
from cli.perf.options import COMMANDS as PERF_COMMANDS
from cli.perf.options import TEXTS as PERF_TEXTS

_ALWAYS = ("--help", "--version")
SHELLS = ("bash", "zsh", "fish")
USAGE = "Usage: interpulse completion bash|zsh|fish"
Tree = Mapping[str, Sequence[str]]
"""Words that may follow each key ("" for the tool's name alone, "topics stats" for its options)."""


def main(words: Sequence[str]) -> int:
    if list(words) in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(words) != 1 or words[0] not in SHELLS:
        print(USAGE, file=sys.stderr)
        return 2
    tools = {
        "pulsar-admin": admin_tree(),
        "pulsar": server_tree(),
        "pulsar-client": command_tree(CLIENT_COMMANDS, CLIENT_TEXTS, OWN),
        "pulsar-perf": command_tree(PERF_COMMANDS, PERF_TEXTS),
        "bookkeeper": shell_tree(),
    }
    writer = {"bash": _bash, "zsh": _zsh, "fish": _fish}[words[0]]
    print("\n".join(line for tool, tree in tools.items() for line in writer(tool, tree)))
    return 0


def admin_tree() -> Tree:
    """Commands of pulsar-admin; hidden groups and commands work but are not offered."""
    tree: dict[str, list[str]] = {"": [name for option in OWN_OPTIONS for name in option.names]}
    for group in GROUPS.values():
        if group.hidden:
            continue
        tree[""].append(group.name)
        commands = [each for each in group.commands() if not each.hidden]
        tree[group.name] = [command.name for command in commands]
        for command in commands:
            tree[f"{group.name} {command.name}"] = [name for option in options(command) for name in option.names]
    return tree


def command_tree(commands: Mapping[str, Command], texts: OptionTexts, own: Sequence[Option] = ()) -> Tree:
    """A tool whose commands are in no group; what it refuses is not offered. `own`: options before the command."""
    tree = {"": [*commands, *(word for option in own if option.key not in texts.refused for word in option.names), *_ALWAYS]}
    for name, command in commands.items():
        offered = (each for each in options(command) if not {each.key, f"{name}.{each.key}"} & set(texts.refused))
        tree[name] = [*(word for option in offered for word in option.names), "--json", "--help"]
    return tree


def shell_tree() -> Tree:
    """bookkeeper with the commands of its shell."""
    tree = {"": ["shell", "bookie", "autorecovery", "version", *_ALWAYS], "shell": list(SHELL_COMMANDS)}
    for name, command in SHELL_COMMANDS.items():
        words = [f"-{word}" for option in command.options for word in (option.short, option.long) if word]
        tree[f"shell {name}"] = [*words, "-help"]
    return tree


def server_tree() -> Tree:
    """Commands of interpulse, from its own parser."""
    from cli.__main__ import server_parser

    parser = server_parser()
    tree: dict[str, list[str]] = {"": []}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                tree[""].append(name)
                tree[name] = [word for option in each._actions for word in option.option_strings]
    tree["completion"] = list(SHELLS)
    return tree


def _called(tool: str) -> str:
    """The names of a tool: in a checkout, and in an installation beside Apache's own."""
    return f"{tool} interpulse{tool.removeprefix('pulsar')}" if tool.startswith("pulsar") else f"{tool} interpulse-{tool}"


def _function(tool: str) -> str:
    return "_" + tool.replace("-", "_")


def _cases(tree: Tree) -> Iterator[str]:
    for words, following in tree.items():
        yield f'    "{words}") echo "{" ".join(following)}" ;;'


def _following(tool: str, tree: Tree) -> list[str]:
    """A function of the shell that lists what may follow; the same for bash and zsh."""
    return [f"{_function(tool)}_words() {{", '  case "$1" in', *_cases(tree), "  esac", "}"]


def _bash(tool: str, tree: Tree) -> list[str]:
    """The words before the one that is completed, without options, are the key: two at most."""
    name = _function(tool)
    return [
        *_following(tool, tree),
        f"{name}() {{",
        '  local key="" word count=0',
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '    case "$word" in -*) continue ;; esac',
        f'    if [ -n "$({name}_words "${{key:+$key }}$word")" ]; then key="${{key:+$key }}$word"; count=$((count + 1)); fi',
        "    [ $count -eq 2 ] && break",
        "  done",
        f'  COMPREPLY=($(compgen -W "$({name}_words "$key")" -- "${{COMP_WORDS[COMP_CWORD]}}"))',
        "}",
        f"complete -o default -F {name} {_called(tool)} bin/{tool}",
    ]


def _zsh(tool: str, tree: Tree) -> list[str]:
    name = _function(tool)
    return [
        *_following(tool, tree),
        f"{name}() {{",
        '  local key="" word',
        '  for word in "${(@)words[2,CURRENT-1]}"; do',
        '    [[ "$word" == -* ]] && continue',
        f'    [[ -n "$({name}_words "${{key:+$key }}$word")" ]] && key="${{key:+$key }}$word"',
        "  done",
        f'  compadd -- ${{(s: :)"$({name}_words "$key")"}}',
        "}",
        f"compdef {name} {_called(tool)}",
    ]


def _fish(tool: str, tree: Tree) -> list[str]:
    """Files are offered after an option alone."""
    name = _function(tool)
    return [
        f"function {name}_words",
        '  switch "$argv[1]"',
        *(f"    case '{words}'; string split -- ' ' '{' '.join(following)}'" for words, following in tree.items()),
        "  end",
        "end",
        f"function {name}",
        "  set -l key ''",
        "  for word in (commandline -opc)[2..-1]",
        "    string match -q -- '-*' $word; and continue",
        '    set -l longer (string trim "$key $word")',
        f'    test -n "$({name}_words $longer)"; and set key $longer',
        "  end",
        f"  {name}_words $key",
        "  string match -q -- '-*' (commandline -opc)[-1]; and __fish_complete_path (commandline -ct)",
        "end",
        *(f"complete -c {each} -f -a '({name})'" for each in _called(tool).split()),
    ]
