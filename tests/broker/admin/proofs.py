"""References to tests, as `path below tests::name`, and whether what they name is there."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def is_there(reference: str) -> bool:
    """Whether the reference exists; a suite in another language has to contain the name."""
    path, _, name = reference.partition("::")
    if path.endswith(".py"):
        return (TESTS / path).is_file() and name in _functions(path)
    return (TESTS / path).is_file() and name in (TESTS / path).read_text()
