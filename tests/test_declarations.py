"""Modules that only declare are recognised by their syntax, and a single decision in one is seen."""

import ast
from pathlib import Path

import pytest

from tests.declarations import only_declares

ROOT = Path(__file__).resolve().parent.parent
DECLARING = '''
"""Places of a log."""
from dataclasses import dataclass, field
from typing import NewType, Protocol

LedgerId = NewType("LedgerId", int)
EARLIEST = Position(-1, -1)
LATEST = Position((1 << 63) - 1, 0)

class Full(Exception):
    """No room."""

class Refused(Exception):
    def __init__(self, code, index, text):
        """Of the step at `index`."""
        super().__init__(text)
        self.code, self.index = code, index
        self.text = text

@dataclass(frozen=True, slots=True)
class Place:
    """One place."""

    ledger_id: LedgerId
    entry_id: int = -1
    """None: -1."""
    properties: dict[str, str] = field(default_factory=dict)

class Reader(Protocol):
    @property
    def name(self) -> str: ...
    async def read(self, place: Place = EARLIEST) -> bytes:
        """The entry."""
    def close(self) -> None:
        pass
'''
DECISIONS = (
    "def half(n): return n // 2",
    "class Place:\n    def __post_init__(self): self.entry_id = 0",
    "class Failed(Exception):\n    def __init__(self, code):\n        super().__init__(str(code))",
    'class Failed(Exception):\n    def __init__(self, code):\n        super().__init__(f"{code} failed")',
    "class Failed(Exception):\n    def __init__(self, code):\n        self.code = code + 1",
    "class Failed(Exception):\n    def __init__(self, code):\n        other.code = code",
    "class Failed(Exception):\n    def __init__(self, code):\n        self.code = 5",
    "class Failed(Exception):\n    def named(self, code):\n        self.code = code",
    "if DEBUG:\n    LIMIT = 1",
    "for name in NAMES:\n    register(name)",
    "try:\n    import ssl\nexcept ImportError:\n    ssl = None",
    "assert LIMIT",
    "register()",
    "NAMES = tuple(name for name in TABLE)",
    "LIMIT = 1 if IS_SMALL else 2",
    "LIMIT = GIVEN or 5",
    "IS_SMALL = LIMIT < 5",
    "KEY = lambda each: each",
    'PATH = f"{ROOT}/ledgers"',
    'NAME = re.compile("[a-z]+")',
    'NAMES = frozenset({"a"})',
    'SCHEMA = Record("policies", Nullable("int"))',
    "class Place:\n    size: int = field(default_factory=lambda: 5)",
    "def read(size=limit_of(5)): ...",
)


def test_types_errors_fields_and_constants_only_declare() -> None:
    assert only_declares(ast.parse(DECLARING))


@pytest.mark.parametrize("decision", DECISIONS)
def test_one_decision_makes_a_module_more_than_a_declaration(decision: str) -> None:
    assert not only_declares(ast.parse(f"{DECLARING}\n{decision}\n"))


def test_contracts_only_declare_and_machines_do_more() -> None:
    modules = {path: ast.parse((ROOT / path).read_text()) for path in ("managed_ledger/contract.py", "metadata/claim.py")}
    assert {path: only_declares(module) for path, module in modules.items()} == {
        "managed_ledger/contract.py": True,
        "metadata/claim.py": False,
    }
