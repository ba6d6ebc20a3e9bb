"""The function of a module as it runs, and the code that a changed source has for it."""

from types import CodeType, FunctionType
from typing import Any


def live_function(module: Any, qualname: str) -> FunctionType | None:
    """The function object of that name as it runs: behind a property, a class method or a wrapper that names it."""
    found: Any = module
    for part in qualname.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    for attribute in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, attribute, found)
    return found if isinstance(found, FunctionType) else None


def code_of(module: CodeType, qualname: str) -> CodeType:
    """The code of that function in a compiled module; of several with one name the last, which is the one that runs."""
    code = module
    for part in qualname.split("."):
        code = [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part][-1]
    return code
