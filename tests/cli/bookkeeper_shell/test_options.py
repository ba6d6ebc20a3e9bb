"""The shell's command line: what operators of Apache's type is understood, what is wrong is named, nothing is loaded for it."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from cli.bookkeeper_cluster.formatting import hex_dump, readable
from cli.bookkeeper_cluster.replication import CHECKS, eta_text
from cli.bookkeeper_shell.__main__ import main
from cli.bookkeeper_shell.options import Given, Option, WrongUsage, parse
from cli.bookkeeper_shell.table import COMMANDS, REFUSED
from cli.configuration.loading import CONF, load_configuration

ROOT = CONF.parent
OPTIONS = (Option("l", "ledgerid", "ledgerId"), Option("le", "lastentryid", "entryId"), Option("m", "msg"))
APACHES = """
metaformat initbookie initnewcluster nukeexistingcluster bookieformat recover ledger readledger listledgers ledgermetadata
listunderreplicated whoisauditor whatisinstanceid simpletest bookiesanity readlog readlogmetadata readjournal lastmark
autorecovery listbookies listfilesondisc updatecookie updateledgers updateBookieInLedger deleteledger bookieinfo clusterinfo
activeledgers decommissionbookie endpointinfo lostbookierecoverydelay triggeraudit forceauditchecks convert-to-db-storage
convert-to-interleaved-storage rebuild-db-ledger-locations-index rebuild-db-ledgers-index check-db-ledgers-index
regenerate-interleaved-storage-index-file queryautorecoverystatus cookie_create cookie_delete cookie_update cookie_get
cookie_generate localconsistencycheck
"""
"""The commands of BookieShell 4.17.3, but for `help`."""


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["-l", "5", "-m"], Given({"l": "5", "m": ""})),
        (["--ledgerid", "5"], Given({"l": "5"})),
        (["-ledgerid", "5"], Given({"l": "5"})),
        (["--ledg", "5"], Given({"l": "5"})),
        (["-le", "-1"], Given({"le": "-1"})),
        (["7", "-m", "8"], Given({"m": ""}, ("7", "8"))),
        (["-m", "--", "-l"], Given({"m": ""}, ("-l",))),
    ],
)
def test_options_are_understood_as_commons_cli_does(words: list[str], given: Given) -> None:
    assert parse(OPTIONS, words) == given


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["-x"], "Unrecognized option: -x"),
        (["--l5"], "Unrecognized option: --l5"),
        (["-l"], "Missing argument for option: l"),
        (["-l", "-m"], "Missing argument for option: l"),
    ],
)
def test_an_unknown_option_or_missing_argument_is_named(words: list[str], complaint: str) -> None:
    with pytest.raises(WrongUsage, match=complaint):
        parse(OPTIONS, words)


def test_the_beginning_of_two_options_is_neither() -> None:
    with pytest.raises(WrongUsage, match="Unrecognized option: --al"):
        parse((Option("a", "alpha"), Option("b", "alps")), ["--al"])


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", str(1 << 63), "0xg"])
def test_an_invalid_ledger_id_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(WrongUsage, match="-l"):
        Given({"l": text}).ledger_id("l")


def test_a_ledger_id_is_decimal_or_hexadecimal() -> None:
    assert [Given({"l": text}).ledger_id("l") for text in ("0", "0x10", str((1 << 63) - 1))] == [0, 16, (1 << 63) - 1]


def test_every_command_of_apaches_is_there_or_says_why_not() -> None:
    assert set(APACHES.split()) <= COMMANDS.keys() | REFUSED.keys()
    assert not COMMANDS.keys() & REFUSED.keys()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_of_the_table_has_its_code_its_help_and_names_what_it_does_not_know(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _, function = COMMANDS[name].where.partition(":")
    assert inspect.iscoroutinefunction(getattr(importlib.import_module(f"cli.bookkeeper_shell.commands.{module}"), function))
    assert main(["shell", "help", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: ")
    assert all(f"-{option.short}" in shown for option in COMMANDS[name].options)
    assert main(["shell", name, "--help"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["shell", name, "-nosuch"]) == 255
    assert "Unrecognized option: -nosuch" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_command_without_a_meaning_here_says_why_and_fails(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", name, "-v"]) == 1
    assert REFUSED[name] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 255, "Usage: bookkeeper shell"),
        (["shel"], 255, "Usage: bookkeeper shell"),
        (["help"], 0, ""),
        (["shell"], 255, "where COMMAND is one of"),
        (["shell", "help"], 0, ""),
        (["shell", "-h"], 0, ""),
        (["shell", "listbookie"], 255, "ERROR: Unknown command listbookie"),
        (["shell", "-conf"], 255, "Missing argument for option: conf"),
        (["shell", "-conf", "/nowhere/bk.conf", "lastmark"], 255, "/nowhere/bk.conf"),
        (["shell", "--set", "bookiePrt=1", "lastmark"], 255, "did you mean bookiePort"),
        (["shell", "--set", "metadataServiceUri=", "listbookies", "-rw"], 255, "metadataServiceUri is not set in"),
        (["shell", "--set", "metadataServiceUri=etcd://x", "listbookies", "-rw"], 255, "expected zk+hierarchical"),
        (["shell", "--set", "metadataServiceUri=zk://h/other", "listbookies", "-rw"], 255, "ledgers are under /ledgers"),
        (["shell", "-ledgeridformat", "octal", "lastmark"], 255, "expected long, hex, uuid"),
        (["shell", "listbookies"], 1, "One and only one of -readwrite, -readonly and -all"),
        (["shell", "ledgermetadata"], 255, "Must specify a ledger id"),
        (["shell", "ledgermetadata", "-l", "1", "-dumptofile", "a", "-restorefromfile", "b"], 254, "Only one of"),
        (["shell", "readledger", "-l", "1", "-fe", "5", "-le", "4"], 255, "-le 4 is before -fe 5"),
        (["shell", "simpletest", "-e", "1"], 255, "the ensemble is the largest"),
        (["shell", "recover"], 255, "'bookieSrc' argument required"),
        (["shell", "recover", "no bookie"], 255, "invalid bookie id"),
        (["shell", "cookie_get"], 255, "expected one <bookie id>"),
        (["shell", "cookie_create", "h:1", "-cf", "/nowhere"], 255, "Cookie file '/nowhere' doesn't exist"),
        (["shell", "nukeexistingcluster", "-p", "/ledgers"], 1, "Either force option or instanceid"),
        (["shell", "forceauditchecks"], 255, "atleast one type of check"),
        (["shell", "updateBookieInLedger", "-sb", "a:1", "-db", "a:1"], 255, "-sb and -db are both a:1"),
    ],
)
def test_wrong_usage_has_apaches_exit_code_and_names_the_thing(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    assert told in capsys.readouterr().err


def test_the_configuration_may_be_named_as_apaches_scripts_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bk.conf"
    file.write_text("metadataServiceUri=\n")
    monkeypatch.setenv("BOOKIE_CONF", str(file))
    assert main(["shell", "listbookies", "-rw"]) == 255
    assert f"not set in {file}" in capsys.readouterr().err
    for option in ("-conf", "--conf"):
        assert main(["shell", option, str(file), "whatisinstanceid"]) == 255
        assert f"not set in {file}" in capsys.readouterr().err


@pytest.mark.parametrize("server", ["bookie", "autorecovery"])
def test_servers_are_started_with_the_configuration_that_apaches_command_would_take(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOKIE_CONF", str(tmp_path / "environment.conf"))
    assert main([server]) == 1
    assert "environment.conf" in capsys.readouterr().err
    assert main([server, "--conf", str(tmp_path / "given.conf")]) == 1
    assert "given.conf" in capsys.readouterr().err


def test_all_keys_of_the_shipped_configuration_take_effect() -> None:
    from cli.bookie.server import SETTINGS
    from cli.configuration.verdicts import BOOKIE, settle

    text = (CONF / "bookkeeper.conf").read_text()
    assert settle(load_configuration([("bookkeeper.conf", text)], []), BOOKIE, SETTINGS) == []


def test_help_and_wrong_usage_load_nothing_that_takes_time() -> None:
    program = (
        "import sys; from cli.bookkeeper_shell.__main__ import main; main(['shell', 'help']); main(['shell', 'nosuch']);"
        "print(sorted({'kazoo', 'google', 'starlette', 'uvloop', 'bookkeeper', 'bookie'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_sizes_dumps_and_times_are_shown_as_apache_does() -> None:
    assert [readable(size) for size in (999, 1000, 1234567, 61073999999, 10**18)] == [
        "",
        "(1KB)",
        "(1.234MB)",
        "(61.073GB)",
        "(1000000TB)",
    ]
    assert hex_dump(b"hello\n") == f"00000000  {'68 65 6c 6c 6f 0a':<47}  hello."
    assert (eta_text(None), eta_text(3725.4)) == ("the rest: not known yet", "the rest: about 1:02:05")
    assert sorted(CHECKS) == ["calc", "ppc", "rc"]
