"""Docstrings that begin with a word which hides their subject: the count of each file, and the list of those that are left.

`python -m tests.docstring_openings` writes the list anew: run it after docstrings were reworded or modules moved.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

LIST = Path(__file__).resolve().parent / "docstring_openings.txt"
"""One line `path: count` for each file that still has such docstrings, sorted. It only shrinks."""
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


def hiding_docstrings(module: ast.Module) -> list[str]:
    """First lines of the docstrings that begin with a hiding word."""
    return [text.splitlines()[0] for text in docstrings(module) if HIDING.match(text)]


def counts(modules: Mapping[str, ast.Module]) -> dict[str, int]:
    found = {path: len(hiding_docstrings(module)) for path, module in sorted(modules.items())}
    return {path: count for path, count in found.items() if count}


def listed() -> dict[str, int]:
    lines = LIST.read_text().splitlines()
    return {path: int(count) for path, _, count in (line.rpartition(": ") for line in lines if line)}


def main() -> None:
    from tests.test_tidy import modules

    LIST.write_text("".join(f"{path}: {count}\n" for path, count in counts(modules()).items()))


if __name__ == "__main__":
    main()
