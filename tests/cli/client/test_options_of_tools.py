"""Every option of Apache's pulsar-client and pulsar-perf 4.0.8 against ours: names, defaults, a sentence of help each.

The facts are those of its tools' own option models (`apache/client_options.json`).
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.admin.arguments import WrongUsage, parse
from cli.admin.table import Command, Option, options, positionals
from cli.client.__main__ import usage as client_usage
from cli.client.commands import COMMANDS as CLIENT
from cli.client.commands import OWN
from cli.client.commands import TEXTS as CLIENT_TEXTS
from cli.command_line.option_texts import OptionTexts
from cli.perf.__main__ import usage as perf_usage
from cli.perf.options import COMMANDS as PERF
from cli.perf.options import TEXTS as PERF_TEXTS

APACHE = json.loads((Path(__file__).parents[1] / "apache" / "client_options.json").read_text())
BEFORE = "(before the command)"
NAMES = [(tool, name) for tool, commands in APACHE.items() for name in commands]


def ours(tool: str, name: str) -> tuple[Sequence[Option], OptionTexts]:
    if name == BEFORE:
        return OWN, CLIENT_TEXTS
    return (options(CLIENT[name]), CLIENT_TEXTS) if tool == "pulsar-client" else (options(PERF[name]), PERF_TEXTS)


def pairs(tool: str, name: str) -> Iterator[tuple[Option, dict[str, Any]]]:
    theirs = {frozenset(each["names"]): each for each in APACHE[tool][name]}
    for option in ours(tool, name)[0]:
        yield option, theirs[frozenset(option.names)]


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_every_option_of_apaches_tool_is_known_by_all_its_names(tool: str, name: str) -> None:
    theirs = {frozenset(each["names"]) for each in APACHE[tool][name]}
    assert {frozenset(option.names) for option in ours(tool, name)[0]} == theirs


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_every_option_has_apaches_default_and_must_be_given_where_apaches_must(tool: str, name: str) -> None:
    for option, fact in pairs(tool, name):
        assert option.required == fact["required"], option
        assert shown(option) == (None if option.required else fact_of(fact)), option


def shown(option: Option) -> Any:
    """A default as a number where it is one."""
    if option.kind in ("flag", "bool"):
        return False
    return plain(option.default)


def fact_of(fact: dict[str, Any]) -> Any:
    """Apache's, without Java's ways to write it: no list is an empty one, no boolean is false."""
    if fact["names"] == ["-pm", "--pool-messages"]:
        return False  # true, and without effect here: to give the flag sets what is set already
    if fact["type"] in ("boolean", "Boolean"):
        return fact["default"] == "true"
    return plain(
        None if fact["default"] == "[]" else (fact["default"] or "").strip("[]") if fact["type"] == "List" else fact["default"]
    )


def plain(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_every_option_has_a_sentence_and_its_default_in_help(tool: str, name: str) -> None:
    shown_options, texts = ours(tool, name)
    command = "" if name == BEFORE else name
    usage = client_usage(command) if tool == "pulsar-client" else perf_usage(command)
    for option in shown_options:
        sentence = texts.sentence(command, option)
        assert sentence.endswith("."), (option.names, "lacks a sentence")
        assert f"  {', '.join(option.names)}" in usage
    on_one_line = " ".join(usage.split())
    assert on_one_line.count("(default: ") + on_one_line.count("(required)") >= len(shown_options)


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_an_option_that_is_refused_names_itself_and_a_reason(tool: str, name: str) -> None:
    shown_options, texts = ours(tool, name)
    refused = [each for each in shown_options if each.key in texts.refused or f"{name}.{each.key}" in texts.refused]
    for option in refused:
        given = {option.key: True if option.kind == "flag" else "DISCARD"}
        with pytest.raises(WrongUsage, match=f"^{max(option.names, key=len)}: not offered here: .{{10}}"):
            list(texts.check(name, shown_options, given))


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_every_option_is_offered_or_without_effect_or_refused_and_never_two_of_these(tool: str, name: str) -> None:
    shown_options, texts = ours(tool, name)
    for option in shown_options:
        keys = {option.key, f"{name}.{option.key}"}
        found = [bool(keys & set(each)) for each in (texts.about, texts.without_effect, texts.refused)]
        assert sum(found) == 1, option.names


def test_no_sentence_is_about_an_option_that_is_not_there() -> None:
    for commands, texts, own in ((CLIENT, CLIENT_TEXTS, OWN), (PERF, PERF_TEXTS, ())):
        known = {"json"} | {option.key for option in own}
        known |= {
            key for name, each in commands.items() for option in options(each) for key in (option.key, f"{name}.{option.key}")
        }
        assert {key for each in texts for key in each} <= known | {f"{name}.json" for name in commands}


def test_a_value_that_is_the_default_is_no_reason_to_complain() -> None:
    command: Command = PERF["produce"]
    words = ["t", "-c", "1", "-ioThreads", "1", "-mlr", "50000"]
    values = parse(positionals(command), options(command), words)
    assert list(PERF_TEXTS.check("produce", options(command), values)) == []
    values = parse(positionals(command), options(command), ["t", "-c", "4"])
    assert list(PERF_TEXTS.check("produce", options(command), values)) == [
        "--max-connections has no effect here: each producer and consumer has a connection of its own"
    ]
