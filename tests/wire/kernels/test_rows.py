"""The columns of rows: the same in Python and in C, written by the classes that derive from them, and copied with these."""

import ast
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from wire.kernels import delivery_rows, rows
from wire.kernels.rows import PartRow, Row

KERNELS = Path(rows.__file__).parent
C_TYPES = {"int": "long long", "float": "double", "bool": "bint"}
"""C types by the annotation of a column; any other column is an object."""


def columns_in_c(module: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in (KERNELS / f"{module}.pxd").read_text().splitlines():
        if match := re.match(r"cdef class (\w+)", line):
            found[match[1]] = {}
        elif match := re.match(r"    cdef public (long long|double|bint|object) (.*)", line):
            found[list(found)[-1]] |= dict.fromkeys(match[2].split(", "), match[1])
    return found


def columns_in_python(module: str) -> dict[str, dict[str, str]]:
    classes = re.split(r"^class (\w+)(?:\(Row\))?:$", (KERNELS / f"{module}.py").read_text(), flags=re.MULTILINE)[1:]
    return {
        name: {
            column: C_TYPES.get(kind, "object") for column, kind in re.findall(r"^    (\w+): (.+)$", text, flags=re.MULTILINE)
        }
        for name, text in zip(classes[::2], classes[1::2], strict=True)
    }


@pytest.mark.parametrize("module", ["rows", "delivery_rows"])
def test_the_columns_have_the_same_names_and_types_in_python_and_in_c(module: str) -> None:
    assert columns_in_c(module) == columns_in_python(module)


@pytest.mark.parametrize("module", [rows, delivery_rows])
def test_every_column_has_a_slot_for_plain_python(module: Any) -> None:
    written = columns_in_python(module.__name__.rpartition(".")[2])
    for name, columns in written.items():
        assert sorted(getattr(module, name).__slots__) == sorted(columns)


def written_by_products() -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Bases of each class of the product, and the fields that it assigns."""
    bases: dict[str, list[str]] = {}
    fields: dict[str, set[str]] = {}
    for layer in ("broker", "bookkeeper", "managed_ledger"):
        for path in (KERNELS.parent.parent / layer).rglob("*.py"):
            for each in ast.walk(ast.parse(path.read_text())):
                if isinstance(each, ast.ClassDef):
                    bases[each.name] = [base.id for base in each.bases if isinstance(base, ast.Name)]
                    inside = [part for part in ast.walk(each) if isinstance(part, ast.Attribute)]
                    fields[each.name] = {part.attr for part in inside if isinstance(part.ctx, ast.Store)}
    return bases, fields


def test_every_column_is_a_field_that_its_class_assigns() -> None:
    """A column that no class assigns is 0 in C: a kernel would use the 0 without an error."""
    bases, fields = written_by_products()
    columns = columns_in_python("rows") | columns_in_python("delivery_rows")
    families: dict[str, set[str]] = {}
    for name in bases:
        family, waiting = {name}, [name]
        while waiting:
            found = [base for base in bases.get(waiting.pop(), ()) if base not in family]
            family.update(found)
            waiting += found
        for row in family & columns.keys():
            families.setdefault(row, set()).update(*(fields.get(each, set()) for each in family))
    unwritten = {row: sorted(columns[row].keys() - written) for row, written in families.items()}
    of_the_log = unwritten.pop("PartRow")  # a part's places are the log's to assign
    assert set(of_the_log) <= set().union(*fields.values()) | {"place", "sends"}
    assert {row: missing for row, missing in unwritten.items() if missing} == {}


class Derived(PartRow):
    """With a slot of its own."""

    __slots__ = ("own",)
    own: list[int]


def test_a_copy_of_a_row_has_its_columns_and_those_of_the_class_that_derives_from_it() -> None:
    part = Derived()
    part.count, part.mix, part.own = 3, [1], [2]
    copied = deepcopy(part)
    assert isinstance(copied, Row)
    assert (copied.count, copied.mix, copied.own) == (3, [1], [2])
    assert copied.mix is not part.mix
