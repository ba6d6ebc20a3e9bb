"""The house rules about imports that import-linter cannot derive: pure modules touch nothing, and no modules import each other.

An import counts wherever it stands: at the top, in a function, or for types alone. Both lists of exceptions only shrink.
"""

import ast
import functools
import re
from collections.abc import Mapping
from pathlib import Path

from tests.test_tidy import direct_imports, modules

FOLDERS = (
    "interpulse/", "simulation/", "cli/", "broker/", "managed_ledger/", "bookkeeper/", "bookie/", "metadata/", "ports/",
    "wire/", "pipeline/",
)  # fmt: skip
FORBIDDEN = {"asyncio", "socket", "ssl", "threading", "time", "random", "secrets", "os", "pathlib", "logging"}
CLAIM = re.compile(r"\bPure\b(?! but| Python)")
"""A module is pure when the first paragraph of its docstring says so."""

REACHING = Path(__file__).resolve().parent / "pure_modules_that_reach.txt"
"""Modules that say "Pure" and reach a forbidden library through other modules, most of them for a contract's types."""
IMPORTING: frozenset[str] = frozenset(
    {"broker/connection/access/identity.py", "cli/connection_advice.py", "cli/devcluster/plan.py",
     "pipeline/pyspark_pulsar/positions.py"}
)  # fmt: skip
"""Modules that say "Pure" and import a forbidden library themselves."""


@functools.cache
def reaches() -> Mapping[str, frozenset[str]]:
    """The modules that each module imports, directly or through others; itself only where it is in a cycle."""
    paths = sorted(path for path in modules() if path.startswith(FOLDERS))
    place = {path: index for index, path in enumerate(paths)}
    direct = [[place[other] for other in direct_imports(path) if other in place and other != path] for path in paths]
    masks = [sum(1 << other for other in others) for others in direct]
    is_changed = True
    while is_changed:
        is_changed = False
        for index, others in enumerate(direct):
            mask = masks[index]
            for other in others:
                mask |= masks[other]
            is_changed |= mask != masks[index]
            masks[index] = mask
    return {path: frozenset(other for other in paths if masks[place[path]] >> place[other] & 1) for path in paths}


@functools.cache
def libraries(path: str) -> frozenset[str]:
    """Top names of everything that one file imports."""
    found: set[str] = set()
    for node in ast.walk(modules()[path]):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def pure_modules() -> list[str]:
    first = {path: (ast.get_docstring(modules()[path]) or "").partition("\n\n")[0] for path in reaches()}
    return [path for path, text in first.items() if CLAIM.search(text)]


def test_a_module_that_says_it_is_pure_imports_neither_time_nor_files_nor_sockets() -> None:
    assert len(pure_modules()) > 200
    assert {path for path in pure_modules() if libraries(path) & FORBIDDEN} == IMPORTING


def test_a_module_that_says_it_is_pure_reaches_none_of_them_through_others() -> None:
    found = {path for path in pure_modules() if any(libraries(other) & FORBIDDEN for other in reaches()[path])} - IMPORTING
    listed = set(REACHING.read_text().split())
    assert sorted(found - listed) == [], "import less, or do not say that it is pure"
    assert sorted(listed - found) == [], f"lines of {REACHING.name} to delete"


def test_no_modules_import_each_other() -> None:
    found = {frozenset({path} | {other for other in others if path in reaches()[other]}) for path, others in reaches().items()}
    assert [sorted(cycle) for cycle in found if len(cycle) > 1] == []
