"""Modules that only declare: types, errors, fields and constants, in which nothing can be wrong that a test could show.

The rule is strict, since such a module needs no test file (`tests/test_tidy.py`). The module has imports, assignments, classes
and functions alone. The body of each function and method is a docstring, `...` or `pass`; a constructor may keep its arguments
as they are and hand them to the class above. No expression chooses or loops: no lambda, comprehension, condition, comparison or
f-string. A call makes a type or a field (`dataclass`, `NewType`), or is one of a class with arguments that are written there
(`Position(-1, -1)`); calls of functions (`re.compile`) and calls inside calls are none of these.
"""

import ast
from collections.abc import Iterator, Sequence

MAKERS = frozenset({"NewType", "TypeVar", "dataclass", "field", "record"})
_STATEMENTS = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_DECISIONS = (
    ast.Lambda,
    ast.comprehension,
    ast.IfExp,
    ast.BoolOp,
    ast.Compare,
    ast.JoinedStr,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
)


def only_declares(module: ast.Module) -> bool:
    statements = list(_statements(module.body))
    return all(map(_is_declaration, statements)) and not any(map(_decides, ast.walk(module)))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _statements(statement.body)


def _is_declaration(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        is_constructor = statement.name == "__init__"
        return all(_says_nothing(each) or (is_constructor and _keeps_arguments(each)) for each in statement.body)
    return isinstance(statement, _STATEMENTS) or _says_nothing(statement)


def _says_nothing(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)


def _keeps_arguments(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([target], value):
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            kept = value.elts if isinstance(value, ast.Tuple) else [value]
            return all(map(_is_attribute_of_self, targets)) and all(isinstance(each, ast.Name) for each in kept)
        case ast.Expr(ast.Call(func, args, [])):
            return ast.unparse(func) == "super().__init__" and all(isinstance(each, ast.Name) for each in args)
    return False


def _is_attribute_of_self(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"


def _decides(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, _DECISIONS)
    if ast.unparse(node.func) in ("super", "super().__init__"):
        return False  # `_is_declaration` has looked at it
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    inner = [each for given in (*node.args, *node.keywords) for each in ast.walk(given)]
    return not (name in MAKERS or name[:1].isupper()) or any(isinstance(each, ast.Call) for each in inner)
