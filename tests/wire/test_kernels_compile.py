"""The kernels are compiled for the Python that runs, and no name in their C can be one of Python's own."""

import importlib
import os
import re
import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.wire.both_kernels import KERNELS

COMPILED = sorted(path.stem for path in KERNELS.glob("*.pxd") if path.stem != "octets")
HAS_COMPILER = shutil.which("cc") is not None and os.environ.get("INTERPULSE_KERNELS") != "python"


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler, or INTERPULSE_KERNELS=python")
@pytest.mark.parametrize("name", COMPILED)
def test_a_kernel_runs_compiled_where_there_is_a_compiler(name: str) -> None:
    file = importlib.import_module(f"wire.kernels.{name}").__file__
    assert file is not None
    assert Path(file).name.endswith(tuple(EXTENSION_SUFFIXES)), "see .venv/kernels.log, then run bin/prepare"


def test_every_function_in_octets_h_has_the_prefix_that_keeps_it_apart_from_pythons_own() -> None:
    functions = re.findall(r"^(?:__attribute__.* )?static [^=;(]*?(\w+)\(", (KERNELS / "octets.h").read_text(), re.MULTILINE)
    assert len(functions) > 14
    assert [name for name in functions if not name.startswith("octets_")] == []
