"""The tables of pulsar-admin against Apache's own command tree, as its tool lists it (`apache/commands.json`, 4.0.8)."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

from cli.admin.arguments import KINDS
from cli.admin.groups import GROUPS, NOT_OFFERED
from cli.admin.output import FORMS
from cli.admin.table import Command, options, positionals

APACHE = json.loads((Path(__file__).parents[1] / "apache" / "commands.json").read_text())["pulsar-admin"]


def commands() -> dict[str, Command]:
    found = {}
    for group in GROUPS.values():
        for command in group.commands():
            found[f"{group.name} {command.name}"] = command
    return found


def offered() -> dict[str, Any]:
    return {name: facts for name, facts in APACHE.items() if name.split()[0] not in NOT_OFFERED}


def test_every_command_of_apaches_is_there_or_is_refused_with_a_reason() -> None:
    assert set(commands()) == set(offered())
    assert all(NOT_OFFERED.values())
    assert len(offered()) > 450


def test_every_command_has_apaches_options_with_all_their_names() -> None:
    for name, command in commands().items():
        ours = {frozenset(option.names) for option in options(command)}
        assert ours == {frozenset(map(str, option["names"])) for option in offered()[name]["options"]}, name


def test_the_same_options_must_be_given() -> None:
    for name, command in commands().items():
        ours = {option.names[0] for option in options(command) if option.required}
        assert ours == {option["names"][0] for option in offered()[name]["options"] if option["required"]}, name


def test_the_same_number_of_arguments_is_taken() -> None:
    for name, command in commands().items():
        assert len(positionals(command)) == len(offered()[name]["arguments"]), name


def test_flags_are_flags_and_everything_else_takes_a_value() -> None:
    for name, command in commands().items():
        flags = {option["names"][0] for option in offered()[name]["options"] if option["type"] == "boolean"}
        ours = {option.names[0] for option in options(command) if option.kind == "flag"}
        assert ours <= flags | {option["names"][0] for option in offered()[name]["options"] if option["type"] == "Boolean"}, (
            name
        )


def test_kinds_forms_and_functions_exist() -> None:
    for name, command in commands().items():
        assert {option.kind.partition("(")[0] for option in options(command)} <= KINDS, name
        assert bool(command.run) != bool(command.request), name
        if command.run:
            module, _, function = command.run.partition(":")
            assert callable(getattr(importlib.import_module(f"cli.admin.commands.{module}"), function)), name
        elif not command.output.startswith(("says:", "field:")):
            assert command.output in FORMS, name


def test_placeholders_of_a_request_have_an_option_or_argument() -> None:
    for name, command in commands().items():
        keys = {option.key for option in options(command)} | {word.lower() for word in positionals(command)}
        wanted = set(re.findall(r"\{[?!]?([\w-]+)\}", command.request + json.dumps(command.body)))
        assert wanted - keys - {"bare-topic", "non-persistent-topic"} == set(), name


WITHOUT_A_PLACE: dict[str, set[str]] = {"topics delete-partitioned-topic": {"deleteSchema"}}
"""Options of which Apache's tool sends nothing: its client deletes the schema in any case."""


def test_every_option_has_a_place_in_the_request() -> None:
    for name, command in commands().items():
        if command.request:
            used = set(re.findall(r"\{[?!]?([\w-]+)\}", command.request + json.dumps(command.body) + command.output))
            used |= {*command.one_of, "indent", *(("topic",) if "bare-topic" in used else ())}
            assert {option.key for option in options(command)} - used == WITHOUT_A_PLACE.get(name, set()), name
