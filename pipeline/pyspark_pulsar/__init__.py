"""Topics of Apache Pulsar and Interpulse as tables on Spark: `spark.read.format("pulsar")`.

PySpark finds `DefaultSource` by the package's name (`pyspark_*`), so nothing has to be registered. The pure parts (`decode`,
`positions`, `plan`, `options`) need numpy and pyarrow, not Spark. Imports inside are relative: the package is the same
installed and in a checkout.
"""

import sys
from pathlib import Path
from typing import Any

VERSION = "0.1.0"
"""Version of the product; a test keeps both the same."""
_BUNDLED = Path(__file__).parent / "bundled"
if _BUNDLED.is_dir():  # installed wheels have it; in a checkout the same packages are beside this one
    sys.path.append(str(_BUNDLED))


def decoder() -> str:
    """ "compiled" where the kernels are, "numpy" where it does their work, some three times as slow."""
    from .decode.compiled import kernel

    return "numpy" if kernel is None else "compiled"


def __getattr__(name: str) -> Any:
    """`DefaultSource` alone, and only when it is asked for: the pure parts have to be importable without PySpark."""
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .spark.source import PulsarSource

    return PulsarSource
