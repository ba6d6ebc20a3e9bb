"""The Rust client (crate `pulsar`): `tests/clients/rust`, run with cargo against a started server."""

import shutil
from pathlib import Path

import pytest

from tests.clients.suite import run_suite

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "rust"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust toolchain")
@pytest.mark.timeout(1800)
def test_the_rust_client_passes_its_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOC", str(HERE / "protoc"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(Path.home() / ".cache" / "interpulse" / "clients-rust"))
    output = run_suite(["cargo", "test", "--locked", "--", "--test-threads=1"], HERE, tmp_path, 1740)
    assert "21 passed; 0 failed" in output
