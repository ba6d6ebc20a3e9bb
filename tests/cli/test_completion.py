"""Shell completion, asked of bash itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.completion import SHELLS, admin_tree, main
from tests.cli.bookkeeper_shell.shells import fish_offers, zsh_with


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([shell]) == 0
    return capsys.readouterr().out


def completed(source: str, function: str, words: list[str], directory: Path) -> set[str]:
    """Words that bash offers in place of the last word."""
    file = directory / "completion.bash"
    file.write_text(source)
    array = " ".join(f"'{word}'" for word in words)
    asked = f". {file}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; {function}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    ran = subprocess.run([bash, "--norc", "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stderr == ""
    return set(ran.stdout.split())


LINES = {
    "pulsar-admin tena": {"tenants"},
    "pulsar-admin topics st": {"stats", "stats-internal"},
    "pulsar-admin namespaces topics st": set(),
    "pulsar-admin --admin-url http://a topics skip persistent://t/n/a --": {"--subscription", "--count"},
    "bin/pulsar-admin topics sta": {"stats", "stats-internal"},
    "pulsar doc": {"doctor"},
    "interpulse doc": {"doctor"},
    "interpulse-admin tena": {"tenants"},
    "interpulse-bookkeeper shell readled": {"readledger"},
    "pulsar completion z": {"zsh"},
    "pulsar-client con": {"consume"},
    "pulsar-perf transaction --txn": {"--txn-timeout", "--txn-disable"},
    "pulsar vers": {"version"},
    "pulsar-client consume --print": {"--print-metadata"},
    "pulsar-client consume --js": {"--json"},
    "pulsar-client produce --chunk": set(),
    "bookkeeper shell readled": {"readledger"},
    "bookkeeper shell readledger -ledger": {"-ledgerid"},
}
"""Completions that a shell offers for the last word."""


def test_zsh_at_a_terminal_completes_groups_commands_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with zsh_with(script("zsh", capsys), tmp_path) as zsh:
        assert {line: zsh.offers(line) for line in LINES} == LINES
        assert "--data-dir" in zsh.offers("pulsar standalone --")


def test_fish_completes_groups_commands_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    offered = fish_offers(
        script("fish", capsys), [*LINES, "pulsar standalone --", f"pulsar standalone --data-dir {tmp_path}/comp"], tmp_path
    )
    assert dict(zip(LINES, offered, strict=False)) == LINES
    assert "--data-dir" in offered[-2]
    assert f"{tmp_path}/completion.fish" in offered[-1]


def test_bash_completes_groups_commands_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = script("bash", capsys)
    assert completed(source, "_pulsar_admin", ["pulsar-admin", "tena"], tmp_path) == {"tenants"}
    assert completed(source, "_pulsar_admin", ["pulsar-admin", "topics", "st"], tmp_path) == {"stats", "stats-internal"}
    words = ["pulsar-admin", "--admin-url", "http://a", "topics", "skip", "persistent://t/n/a", "--"]
    assert completed(source, "_pulsar_admin", words, tmp_path) == {"--subscription", "--count"}
    assert completed(source, "_pulsar", ["pulsar", "doc"], tmp_path) == {"doctor"}
    assert completed(source, "_pulsar_client", ["pulsar-client", "con"], tmp_path) == {"consume"}
    words = ["pulsar-perf", "transaction", "--txn"]
    assert completed(source, "_pulsar_perf", words, tmp_path) == {"--txn-timeout", "--txn-disable"}
    assert completed(source, "_pulsar", ["pulsar", "vers"], tmp_path) == {"version"}
    assert completed(source, "_pulsar_client", ["pulsar-client", "consume", "t", "--js"], tmp_path) == {"--json"}
    assert completed(source, "_pulsar_client", ["pulsar-client", "produce", "--chunk"], tmp_path) == set()
    assert "complete -o default -F _pulsar pulsar interpulse bin/pulsar" in source
    assert completed(source, "_bookkeeper", ["bookkeeper", "shell", "readled"], tmp_path) == {"readledger"}
    assert "--data-dir" in completed(source, "_pulsar", ["pulsar", "standalone", "--"], tmp_path)


def test_every_shell_gets_a_script_with_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in SHELLS:
        source = script(shell, capsys)
        assert all(name in source for name in ("resource-quotas", "create-partitioned-topic", "pulsar-admin"))
    assert len(admin_tree()) > 350


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_can_read_its_script(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    file = tmp_path / f"completion.{shell}"
    file.write_text(script(shell, capsys))
    ran = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_unknown_shell_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["csh"]) == 2
    assert "bash|zsh|fish" in capsys.readouterr().err
