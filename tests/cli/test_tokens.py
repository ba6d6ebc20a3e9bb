"""`bin/pulsar tokens`, as an operator uses it: Apache's options, files and output."""

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main


def tokens(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Output of the command; it must succeed."""
    capsys.readouterr()
    code = main(["tokens", *map(str, words)])
    told = capsys.readouterr()
    assert (code, told.err) == (0, "")
    return told.out.strip()


def refusal(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["tokens", *map(str, words)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("alg", ["HS256", "HS512"])
def test_a_secret_signs_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str], alg: str) -> None:
    key = tmp_path / "secret.key"
    tokens(capsys, "create-secret-key", "-a", alg, "-o", key)
    assert len(key.read_bytes()) == int(alg[2:]) // 8
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    made = tokens(capsys, "create", "-a", alg, "-sk", f"file://{key}", "-s", "alice", "-e", "1h")
    claims = json.loads(tokens(capsys, "validate", "-sk", key, made))
    assert claims["sub"] == "alice"
    assert abs(claims["exp"] - time.time() - 3600) < 60
    assert tokens(capsys, "show", made).split("\n")[1] == "---"
    other = tmp_path / "other.key"
    tokens(capsys, "create-secret-key", "-a", alg, "-b", "-o", other)
    assert "not a token of ours" in refusal(capsys, "validate", "-sk", other.read_text(), made)


@pytest.mark.parametrize("alg", ["RS256", "ES256"])
def test_a_private_key_signs_and_its_public_key_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str], alg: str) -> None:
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    tokens(capsys, "create-key-pair", "-a", alg, "--output-private-key", private, "--output-public-key", public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    made = tokens(capsys, "create", "-a", alg, "--private-key", private, "--subject", "alice")
    file = tmp_path / "token"
    file.write_text(made)
    assert json.loads(tokens(capsys, "validate", "-a", alg, "-pk", public, "-f", file)) == {"sub": "alice"}
    assert "not a token of ours" in refusal(capsys, "validate", "-a", alg, "-pk", public, made[:-8] + "AAAAAAAA")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "-s", "a"), "--secret-key or --private-key"),
        (("create", "-s", "a", "-sk", "data:,canary"), "32 bytes"),
        (("create", "-s", "a", "-pk", "data:,canary"), "no private key"),
        (("create-secret-key", "-a", "RS256"), "HS256"),
        (("create-key-pair", "-a", "HS256", "--output-private-key", "x", "--output-public-key", "y"), "RS256"),
        (("show", "x"), "not a token"),
        (("validate", "x"), "--public-key"),
        (("show",), "--stdin"),
    ],
)
def test_wrong_usage_is_refused_without_telling_a_secret(capsys: pytest.CaptureFixture[str], words: Any, told: str) -> None:
    error = refusal(capsys, *words)
    assert told in error
    assert "canary" not in error
