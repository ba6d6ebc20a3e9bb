"""Builds the wheel and the source distribution: the package, and of the checkout around it the generated code of the wire and
the kernels that the pipeline uses, compiled where there is a C compiler.

Both go inside the package (`pyspark_pulsar/bundled`), so that an installation adds its own import names (`pyspark_pulsar` and
`pulsar_frames`) and no other (docs/adr/0025-the-pipeline-reads-by-itself.md). Without a compiler, or with
INTERPULSE_KERNELS=python, the wheel has no kernels and is slower: `pyspark_pulsar.decoder()` says which. A source distribution
has its own copy of that part of the wire.
"""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
WIRE = HERE / "wire" if (HERE / "wire").is_dir() else HERE.parent / "wire"
KERNELS = ("columns", "outgoing", "plain_entries")
BUNDLED = "pyspark_pulsar.bundled.wire"
TYPES = ("octets.py", "octets.pxd", "octets.h", "__init__.py")
"""Beside each kernel's .py and .pxd: what they are compiled with."""


def kernels_source() -> list[str]:
    return [*TYPES, *(f"{name}{suffix}" for name in KERNELS for suffix in (".py", ".pxd"))]


class KernelsBuild(build_ext):
    """Compiles the kernels under their own names (`wire.kernels`), and puts them where the package has them."""

    build_lib: str
    build_temp: str

    def run(self) -> None:
        try:
            self._compile(Path(self.build_temp).resolve() / "kernels", Path(self.build_lib).resolve())
        except Exception as error:  # noqa: BLE001 - whatever is missing: a compiler, its headers, Cython
            self.warn(f"no compiled kernels, numpy does their work, slower: {error}")

    def _compile(self, work: Path, build_lib: Path) -> None:
        from Cython.Build import cythonize

        shutil.rmtree(work, ignore_errors=True)
        put(work / "wire" / "kernels", WIRE / "kernels", kernels_source())
        before = Path.cwd()
        os.chdir(work)
        try:
            flags = ["-O3", "-g0", "-Wno-sign-compare", "-Iwire/kernels"]
            extensions = [
                Extension(f"wire.kernels.{each}", [f"wire/kernels/{each}.py"], extra_compile_args=flags) for each in KERNELS
            ]
            directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
            directives |= {"initializedcheck": False, "annotation_typing": False}  # as bin/compile-kernels
            found = cythonize(extensions, quiet=True, compiler_directives=directives)  # type: ignore[no-untyped-call]
            command = build_ext(Distribution({"ext_modules": found}))
            command.build_lib, command.build_temp = "built", "objects"
            command.ensure_finalized()
            command.run()
        finally:
            os.chdir(before)
        target, built = build_lib / Path(*BUNDLED.split(".")) / "kernels", work / "built" / "wire" / "kernels"
        put(target, built, [each.name for each in built.iterdir()])
        put(target, WIRE / "kernels", ["__init__.py"])


def put(into: Path, source: Path, names: list[str]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(source / name, into / name)


class WholeSource(sdist):
    """With the part of the wire that is bundled, which lies beside this directory in a checkout."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        put(Path(base_dir, "wire"), WIRE, ["__init__.py", "run.py", "record.py", "transactions.py"])
        put(Path(base_dir, "wire", "kernels"), WIRE / "kernels", kernels_source())
        shutil.copytree(WIRE / "generated", Path(base_dir, "wire", "generated"), ignore=shutil.ignore_patterns("__pycache__"))


setup(
    packages=[
        *find_packages(include=["pyspark_pulsar", "pyspark_pulsar.*", "pulsar_frames"]),
        *(BUNDLED, f"{BUNDLED}.generated"),
    ],
    package_dir={
        BUNDLED: os.path.relpath(WIRE, HERE),
        f"{BUNDLED}.generated": os.path.relpath(WIRE / "generated", HERE),
    },
    # the build itself lists the kernels, so that a missing Cython is no error
    ext_modules=[Extension("kernels", [], optional=True)] if os.environ.get("INTERPULSE_KERNELS") != "python" else [],
    cmdclass={"build_ext": KernelsBuild, "sdist": WholeSource},
)
