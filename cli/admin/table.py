"""Commands as data: arguments, request, form of the output. `tables` has a list for each group.

The grammar of a command's arguments, words between spaces: `TOPIC` a positional argument, `-f/--force` a flag,
`-s/--size:bytes!` an option with a kind (string when there is none after the colon) that must be given, `--time:minutes=60` one
with a default. The names come as Apache's `--help` has them. Kinds: `arguments` reads them.
"""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """One flag (`kind` is "flag") or option; `key` is its longest name without dashes."""

    key: str
    names: tuple[str, ...]
    kind: str
    required: bool
    default: str | None


class Command(NamedTuple):
    """`request` is a method and a path under /admin/v2 with `{key}` in it; where code is needed, `run` is `module:function`.

    body: None, or JSON in which a string "{key}" stands for the typed value; a member without a value is left out.
    output: a form of `output.rendered`; "says:..." is a sentence about what was asked for.
    one_of: flags of which one must be given; together: options of which all are given, or none.
    """

    name: str
    arguments: str = ""
    request: str = ""
    body: Any = None
    output: str = "none"
    run: str = ""
    media_type: str = "application/json"
    body_is_text: bool = False
    one_of: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    hidden: bool = False
    aliases: tuple[str, ...] = ()


def positionals(command: Command) -> list[str]:
    """The names of its positional arguments, as the grammar has them: TOPIC, NAMESPACE."""
    return [word for word in command.arguments.split() if not word.startswith("-")]


def options(command: Command) -> list[Option]:
    return [_option(word) for word in command.arguments.split() if word.startswith("-")]


def _option(word: str) -> Option:
    head, has_default, default = word.partition("=")
    required = head.endswith("!")
    names, has_kind, kind = head.removesuffix("!").partition(":")
    each = tuple(names.split("/"))
    key = max(each, key=lambda name: (len(name.lstrip("-")), name.startswith("--"))).lstrip("-")
    return Option(key, each, (kind or "string") if has_kind or required else "flag", required, default if has_default else None)
