"""Docstrings that begin with a word which hides their subject. There are none: `tests/test_tidy.py`."""

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

HIDING = re.compile(
    r"(?:Of|What|Whoever|Who|Whose|Whom|How|Where|Which|When|As|It|Its|In|By|From|For|To|Nobody|So|At|Not|And|That)\b"
)
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(module: ast.Module) -> Iterator[str]:
    """Docstrings of a module, its classes and functions, and those below assignments: of constants, fields and attributes."""
    for node in ast.walk(module):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""
        body = getattr(node, "body", None)
        for before, statement in pairwise(body if isinstance(body, list) else ()):
            match before, statement:
                case (ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str() as text))):
                    yield text.strip()


def hiding(modules: Mapping[str, ast.Module]) -> list[str]:
    """Path and first line of each docstring that begins with a hiding word."""
    found = ((path, text) for path, module in sorted(modules.items()) for text in docstrings(module) if HIDING.match(text))
    return [f"{path}: {text.splitlines()[0]}" for path, text in found]
