"""Every key of Apache's has a verdict; what is refused is refused with its reason, and nothing is ignored in silence."""

import ast
import dataclasses
from pathlib import Path

import pytest

from cli.autorecovery.server import SETTINGS as AUTORECOVERY
from cli.bookie.server import SETTINGS as BOOKIE_SETTINGS
from cli.broker.server import SETTINGS as BROKER_SETTINGS
from cli.configuration.changes import AT_START_ONLY
from cli.configuration.keys import apache_broker_keys
from cli.configuration.loading import load_configuration
from cli.configuration.verdicts import (
    BOOKIE,
    BROKER,
    PROXY,
    STANDALONE,
    Verdict,
    effective_keys,
    judge,
    keys_of,
    same_value,
    settle,
    table,
)
from cli.proxy.server import SETTINGS as PROXY_SETTINGS
from cli.standalone.server import SETTINGS as STANDALONE_SETTINGS
from ports.settings import BadSetting, fold

OF = {
    "broker": frozenset().union(effective_keys(BROKER_SETTINGS), effective_keys(STANDALONE_SETTINGS)),
    "bookkeeper": effective_keys((*BOOKIE_SETTINGS, *AUTORECOVERY)),
    "proxy": effective_keys(PROXY_SETTINGS),
}


@pytest.mark.parametrize("name", ["broker", "bookkeeper", "proxy"])
def test_every_key_takes_effect_or_has_a_reason_why_not(name: str) -> None:
    judged = table(name)
    assert sorted(key for key in keys_of(name) if key not in judged and fold(key) not in OF[name]) == []
    assert sorted(judged.keys() - keys_of(name)) == []


def test_apaches_defaults_are_never_refused() -> None:
    values = {key.name: key.default for key in apache_broker_keys().values()}
    effective = effective_keys(BROKER_SETTINGS)
    assert [key for key, value in values.items() if judge(key, value, BROKER, effective).verdict is Verdict.REFUSED] == []


def test_a_key_that_would_be_ignored_is_refused_with_the_reason() -> None:
    configuration = load_configuration([("broker.conf", "functionsWorkerEnabled=true\nnumIOThreads=9")], [])
    with pytest.raises(BadSetting, match="functionsWorkerEnabled=true: there are no functions"):
        settle(configuration, BROKER, BROKER_SETTINGS)


def test_everything_that_is_refused_is_said_at_once() -> None:
    text = "enablePackagesManagement=true\nfunctionsWorkerEnabled=true"
    with pytest.raises(BadSetting, match=r"enablePackagesManagement=true: .*; functionsWorkerEnabled=true: "):
        settle(load_configuration([("broker.conf", text)], []), BROKER, BROKER_SETTINGS)


def test_keys_that_mean_nothing_here_are_named_and_pass() -> None:
    text = "numIOThreads=9\nclusterName=a\njournalMaxSizeMB=5"
    configuration = load_configuration([("broker.conf", text)], [])
    assert settle(configuration, BROKER, BROKER_SETTINGS) == ["journalMaxSizeMB", "numIOThreads"]
    assert settle(configuration, STANDALONE, STANDALONE_SETTINGS) == ["numIOThreads"]


@pytest.mark.parametrize(
    ("kind", "key", "value", "reason"),
    [
        (BROKER, "journalMaxSizeMB", "5", "it is for a bookie, not for a broker"),
        (BOOKIE, "brokerDeleteInactiveTopicsEnabled", "false", "it is for a broker, not for a bookie"),
        (BROKER, "servicePort", "6651", "it is for a proxy, not for a broker"),
        (PROXY, "bookiePort", "1", "it is for a bookie, not for a proxy"),
    ],
)
def test_a_key_of_another_process_says_whose_it_is(kind: str, key: str, value: str, reason: str) -> None:
    judged = judge(key, value, kind, frozenset())
    assert (judged.verdict, judged.reason) == (Verdict.WITHOUT_EFFECT, reason)


def test_a_secret_is_not_told_in_a_refusal() -> None:
    configuration = load_configuration([("broker.conf", "sslFactoryPluginParams=canary")], [])
    with pytest.raises(BadSetting) as refusal:
        settle(configuration, BROKER, BROKER_SETTINGS)
    assert "sslFactoryPluginParams=*****" in str(refusal.value)
    assert "canary" not in str(refusal.value)
    assert "canary" not in repr(configuration)


@pytest.mark.parametrize(
    ("one", "other"), [("TRUE", "true"), ("1.0", "1"), ("", "null"), ("a, b", "b,a"), ("-1", "-1.0"), (" x ", "x")]
)
def test_values_are_compared_as_they_are_read(one: str, other: str) -> None:
    assert same_value(one, other)


def test_values_that_differ_differ() -> None:
    assert not same_value("1", "10")
    assert not same_value("Abc", "abc")


def test_a_dynamic_key_is_read_when_it_is_needed_or_is_said_to_be_read_at_a_start() -> None:
    """A constructor that reads one would keep what it was."""
    dynamic = {fold(key.name): key.name for key in apache_broker_keys().values() if key.dynamic}
    fields = {field.name for cls in BROKER_SETTINGS for field in dataclasses.fields(cls)}
    watched = {name: dynamic[fold(name)] for name in fields if dynamic.get(fold(name), "") not in {"", *AT_START_ONLY}}
    assert len(watched) > 40
    root = Path(__file__).resolve().parents[3]
    modules = [
        path for layer in ("broker", "handlers", "managed_ledger", "bookkeeper", "cli") for path in (root / layer).rglob("*.py")
    ]
    read = [
        f"{path.relative_to(root)}:{node.lineno}: {watched[node.attr]}"
        for path in modules
        if not path.name.endswith("settings.py")
        for constructor in ast.walk(ast.parse(path.read_text()))
        if isinstance(constructor, ast.FunctionDef) and constructor.name == "__init__"
        for node in ast.walk(constructor)
        if isinstance(node, ast.Attribute) and node.attr in watched
    ]
    assert read == []
