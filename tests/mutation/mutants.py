"""Mutants of a module: one small change each, made in the syntax tree of one of its functions.

Pure. `mutants_of` lists them in the order of the source; `mutated_code` gives the code object of the function with the change.
A change is one that a tired programmer could make: a bound off by one, a comparison turned round, `and` for `or`, no call.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

from tests.mutation.live import code_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """The `number`th change in the function `qualname` of `module`."""

    module: str
    qualname: str
    number: int
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.qualname}: {self.what} (change {self.number})"


@dataclass(frozen=True, slots=True)
class _Change:
    """`apply` puts the change into the node that it was made for."""

    node: ast.AST
    what: str
    apply: Callable[[], None]


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def functions_of(tree: ast.Module) -> Iterator[tuple[str, FunctionNode]]:
    """The outermost functions and methods of a module with their qualified names; what is inside one belongs to it."""

    def inside(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, FunctionNode]]:
        for child in node.body:
            if isinstance(child, ast.ClassDef):
                yield from inside(child, f"{prefix}{child.name}.")
            elif isinstance(child, FunctionNode):
                yield f"{prefix}{child.name}", child

    yield from inside(tree, "")


def mutants_of(module: str, source: str) -> list[Mutant]:
    return [
        Mutant(module, qualname, number, getattr(change.node, "lineno", function.lineno), change.what)
        for qualname, function in dict(functions_of(ast.parse(source))).items()
        for number, change in enumerate(_changes(function))
    ]


def mutated_code(source: str, filename: str, mutant: Mutant) -> CodeType:
    """The code of the mutant's function with its change in it."""
    tree = ast.parse(source)
    function = dict(functions_of(tree))[mutant.qualname]
    list(_changes(function))[mutant.number].apply()
    return code_of(compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True), mutant.qualname)


def _changes(function: FunctionNode) -> Iterator[_Change]:
    for statement in function.body:
        for node in ast.walk(statement):
            yield from _changes_of(node)


def _changes_of(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BoolOp():
            other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _set(node, "op", other, f"{_name(node.op)} -> {_name(other)}")
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _OPERATORS:
            operator = _OPERATORS[type(node.op)]()
            yield _set(node, "op", operator, f"{_name(node.op)} -> {_name(operator)}")
        case ast.If() | ast.While() | ast.IfExp():
            yield _set(node, "test", ast.UnaryOp(ast.Not(), copy.deepcopy(node.test)), "condition negated")
        case ast.Constant(value=bool(value)):
            yield _set(node, "value", not value, f"{value} -> {not value}")
        case ast.Constant(value=int(value)):
            yield _set(node, "value", value + 1, f"{value} -> {value + 1}")
        case ast.Call(func=ast.Name(id=name) as called) if name in _NAMES:
            yield _set(called, "id", _NAMES[name], f"{name} -> {_NAMES[name]}")
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield _set(node, "value", ast.Constant(None), "call forgotten")


def _compared(node: ast.Compare) -> Iterator[_Change]:
    if type(node.ops[0]) in _COMPARISONS:
        operator = _COMPARISONS[type(node.ops[0])]()
        yield _set(node, "ops", [operator, *node.ops[1:]], f"{_name(node.ops[0])} -> {_name(operator)}")


def _set(node: ast.AST, field: str, value: object, what: str) -> _Change:
    return _Change(node, what, lambda: setattr(node, field, value))


def _name(node: ast.AST) -> str:
    return type(node).__name__
