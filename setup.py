"""Builds the wheel and the source distribution: one import package, `interpulse`, with everything that runs inside it.

The folders of the repository (`broker`, `cli`, ...) become `interpulse/product/...`, which is a folder and no package: only the
processes that `interpulse.programs` starts have it on their path, so an installation adds no other import name
(docs/adr/0033-one-import-package.md). The kernels are compiled where there is a C compiler; without one, or with
INTERPULSE_KERNELS=python, they run as plain Python, slower, and the ready line of a server says so. INTERPULSE_KERNELS=prepared
takes those that bin/prepare compiled in this checkout for this Python.
"""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
PRODUCT = "interpulse.product"
FOLDERS = ("bookie", "bookkeeper", "broker", "cli", "handlers", "managed_ledger", "metadata", "ports", "wire")
NO_COMPILER = "the kernels are not compiled and run as plain Python, slower"
UNCOMPILED_CYTHON = '''"""The module `cython` of kernels that are not compiled: it says that they are not."""

compiled = False
'''


class Product(build_py):
    """The packages, the configuration files beside them, and the kernels."""

    def run(self) -> None:
        super().run()
        product = Path(self.build_lib).resolve() / "interpulse" / "product"
        for path in (HERE / "conf").rglob("*"):
            if path.is_file():
                put(path, product / "conf" / path.relative_to(HERE / "conf"))
        (product / "cython.py").write_text(UNCOMPILED_CYTHON)
        (product / "commit.txt").write_text(commit())
        if reason := add_kernels(product / "wire" / "kernels"):
            self.warn(f"{NO_COMPILER}: {reason}")


class Source(sdist):
    """The files that MANIFEST.in names, and which commit they are."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        Path(base_dir, "commit.txt").write_text(commit())


class Compiled(Distribution):
    """A distribution for one kind of machine, unless there are no compiled kernels in it."""

    def has_ext_modules(self) -> bool:
        return os.environ.get("INTERPULSE_KERNELS") != "python"


def put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def add_kernels(target: Path) -> str:
    """Puts the compiled kernels beside their sources; the reason where there are none."""
    wanted = os.environ.get("INTERPULSE_KERNELS", "")
    if wanted == "python":
        return "INTERPULSE_KERNELS=python"
    if wanted == "prepared":
        found = [path for path in (HERE / "wire" / "kernels").iterdir() if path.name.endswith(EXTENSION_SUFFIXES[0])]
        for path in found:
            shutil.copyfile(path, target / path.name)
        return "" if found else "bin/prepare compiled none"
    done = subprocess.run(
        [sys.executable, str(HERE / "bin" / "compile-kernels"), "--into", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return (
        "" if done.returncode == 0 else next((line for line in lines if " error: " in line), lines[-1] if lines else "no word")
    )


def commit() -> str:
    """The commit that is built, from git or from the source distribution that was made of it."""
    written = HERE / "commit.txt"
    if written.is_file():
        return written.read_text()
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
    return asked.stdout


def packages() -> list[str]:
    found = [f"{PRODUCT}.{each}" for top in FOLDERS for each in (top, *(f"{top}.{under}" for under in find_packages(top)))]
    return ["interpulse", *(f"interpulse.{each}" for each in find_packages("interpulse")), *found]


setup(
    packages=packages(),
    package_dir={f"{PRODUCT}.{top}": top for top in FOLDERS},
    package_data={"": ["*.txt", "*.pyi", "*.pxd", "*.h"], "interpulse": ["py.typed"]},
    distclass=Compiled,
    cmdclass={"build_py": Product, "sdist": Source},
)
