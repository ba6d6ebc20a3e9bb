"""The version of the product, and what else `--version` tells: one source for every program.

Standard library alone, and nothing read before it is asked for: `pulsar-admin` imports this.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

VERSION = "0.1.0"
"""The one place: `pyproject.toml` takes it from here, and a test holds what else names a version to it."""
PROTOCOL_VERSION = 21
"""The newest of Pulsar's binary protocol that brokers and tools here speak."""
APACHE_VERSION = "4.0.8"
"""The release of Apache Pulsar whose behaviour is matched."""
ROOT = Path(__file__).resolve().parent.parent
_COMMIT_CHARACTERS = 12
_BUILT_FROM = "commit.txt"
"""Beside the packages where they are installed: setup.py writes it."""


def main(words: Sequence[str] = ()) -> int:
    """`interpulse version [--json]`. Exit code 0, or 2 for wrong usage."""
    if [*words] not in ([], ["--json"]):
        print("Usage: interpulse version [--json]", file=sys.stderr)
        return 2
    print(_as_json() if words else version_text())
    return 0


def version_text(program: str = "interpulse") -> str:
    """Text of `--version`: a line for each thing that a report of a defect needs."""
    facts = _facts()
    protocol = f"{facts.pop('protocol')} (as Apache Pulsar {APACHE_VERSION})"
    return "\n".join(
        [f"{program} {facts.pop('version')}", *(f"{key}: {text}" for key, text in facts.items()), f"protocol: {protocol}"]
    )


def _as_json() -> str:
    import json

    return json.dumps(_facts() | {"protocol": PROTOCOL_VERSION, "apache": APACHE_VERSION})


def _facts() -> dict[str, str]:
    found = sys.version_info
    return {
        "version": VERSION,
        "commit": _commit() or "not known (neither a checkout nor an installation)",
        "python": f"{found.major}.{found.minor}.{found.micro} ({sys.executable or 'unknown'})",
        "kernels": _kernels(),
        "protocol": str(PROTOCOL_VERSION),
    }


def _commit() -> str:
    """The commit of the checkout, read from its files (git need not be there), or that of an installation."""
    directory = ROOT / ".git"
    try:
        if (ROOT / _BUILT_FROM).is_file():
            return (ROOT / _BUILT_FROM).read_text().strip()[:_COMMIT_CHARACTERS]
        if directory.is_file():  # a work tree beside the checkout: "gitdir: PATH"
            directory = (ROOT / directory.read_text().partition(":")[2].strip()).resolve()
        head = (directory / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head[:_COMMIT_CHARACTERS]
        return _of_reference(directory, head.partition(":")[2].strip())[:_COMMIT_CHARACTERS]
    except OSError:
        return ""


def _of_reference(directory: Path, name: str) -> str:
    common = directory
    if (directory / "commondir").exists():
        common = (directory / (directory / "commondir").read_text().strip()).resolve()
    for place in (directory, common):
        if (place / name).exists():
            return (place / name).read_text().strip()
    for text in (common / "packed-refs").read_text().splitlines():
        commit, _, each = text.partition(" ")
        if each == name:
            return commit
    return ""


def _kernels() -> str:
    """State of the kernels, from the compiled file beside a source: importing one costs more than the rest of the answer."""
    directory = ROOT / "wire" / "kernels"
    if any((directory / f"sends{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
        return "compiled"
    return "not compiled for this Python (slower; bin/prepare compiles them where there is a C compiler)"
