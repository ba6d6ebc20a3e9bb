"""Topics of Apache Pulsar and Interpulse as Arrow data, without Spark: `read`, `batches`, and `PipelineError` of both.

pandas, polars and DuckDB take a table of Arrow's as it is. See docs/pipeline.md.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..pyspark_pulsar.errors import PipelineError
    from ..pyspark_pulsar.frames.reading import batches, read
else:
    # beside this package: as installed it is another of the same name, in a checkout it lies in `pipeline`
    _BESIDE = __name__.removesuffix("pulsar_frames") + "pyspark_pulsar"
    PipelineError = importlib.import_module(f"{_BESIDE}.errors").PipelineError
    _reading = importlib.import_module(f"{_BESIDE}.frames.reading")
    batches, read = _reading.batches, _reading.read

__all__ = ["PipelineError", "batches", "read"]
