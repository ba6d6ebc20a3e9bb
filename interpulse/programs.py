"""The programs of an installation: each becomes a process of the product, as the scripts of `bin/` do in a checkout.

Owns the command line and the environment of such a process. Standard library alone, and little of it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

_HERE = Path(__file__).resolve().parent
_CARRIED = _HERE / "product"
PRODUCT = _CARRIED if _CARRIED.is_dir() else _HERE.parent
"""The folder with `cli`, `broker` and the rest: inside the package where it is installed, around it in a checkout."""


def module_command(module: str, words: Sequence[str]) -> list[str]:
    """The command line of a module of the product. `-P`: the working directory is not on its path."""
    return [sys.executable, "-P", "-m", module, *words]


def product_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the product on the path of modules, before what the user has there."""
    path = os.pathsep.join(filter(None, (str(PRODUCT), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def _become(module: str) -> NoReturn:
    """Turn this process into one of the product: same process id, signals and terminal."""
    os.execve(sys.executable, module_command(module, sys.argv[1:]), product_environment(os.environ))


def interpulse() -> NoReturn:
    """`interpulse standalone` and the other commands of `bin/pulsar`."""
    _become("cli")


def pulsar_admin() -> NoReturn:
    """`pulsar-admin`: the standard library is enough, so its interpreter reads no site packages and no PYTHON* variables."""
    command = [sys.executable, "-I", "-S", str(PRODUCT / "cli" / "admin" / "__main__.py"), *sys.argv[1:]]
    os.execv(sys.executable, command)


def pulsar_client() -> NoReturn:
    """`pulsar-client produce`, `consume` and `read`."""
    _become("cli.client")


def pulsar_perf() -> NoReturn:
    """`pulsar-perf produce`, `consume`, `read` and `transaction`."""
    _become("cli.perf")


def bookkeeper() -> NoReturn:
    """`bookkeeper shell COMMAND`, `bookkeeper bookie` and `bookkeeper autorecovery`."""
    _become("cli.bookkeeper_shell")
