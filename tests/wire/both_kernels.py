"""Every kernel twice: as it is installed (compiled where there was a compiler) and as plain Python from its source."""

import importlib
import importlib.util
import pathlib
import sys
from types import ModuleType

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "wire" / "kernels"
NAMES = ("acks", "entries", "messages", "metadata", "sends", "sequences", "stamps")


def plain(name: str) -> ModuleType:
    """The module run from its source, whether or not a compiled one lies beside it."""
    spec = importlib.util.spec_from_file_location(f"plain_{name}", KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(name: str) -> ModuleType:
    return importlib.import_module(f"wire.kernels.{name}")


def both(name: str) -> tuple[ModuleType, ModuleType]:
    return plain(name), installed(name)


def both_beside(name: str, *imported: str) -> tuple[ModuleType, ModuleType]:
    """Both forms of a kernel whose plain form imports `imported`, in their order, by names that a compiled one hides."""
    found = installed(name)
    before = {each: installed(each) for each in imported}
    try:
        for each in imported:
            sys.modules[f"wire.kernels.{each}"] = plain(each)
        return plain(name), found
    finally:
        sys.modules.update({f"wire.kernels.{each}": module for each, module in before.items()})
