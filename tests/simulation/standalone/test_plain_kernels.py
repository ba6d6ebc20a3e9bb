"""Lives of a standalone whose kernels are not compiled, as where there is no C compiler."""

import subprocess
import sys

from tests.toolchain import ROOT

PLAIN = """
import importlib.util
import sys


class Plain:
    def find_spec(self, name, path=None, target=None):
        package, _, module = name.rpartition(".")
        return importlib.util.spec_from_file_location(name, f"wire/kernels/{module}.py") if package == "wire.kernels" else None


sys.meta_path.insert(0, Plain())
from simulation.standalone.scenario import run_seed
from wire.kernels import turns

assert turns.__file__.endswith(".py")
failures = {seed: run_seed(seed).failure for seed in range(4, 8)}
assert not any(failures.values()), failures
"""


def test_a_standalone_without_compiled_kernels_keeps_its_promises() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], cwd=ROOT, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
