"""Builds the wheel: the package itself, and of the checkout around it the generated code of the wire.

That goes inside the package (`pyspark_pulsar/bundled`), so that an installation adds one import name and no other
(docs/adr/0025-the-pipeline-reads-by-itself.md).
"""

from pathlib import Path

from setuptools import setup

WIRE = Path(__file__).resolve().parent.parent / "wire"

setup(
    packages=[
        *(
            "pyspark_pulsar",
            "pyspark_pulsar.client",
            "pyspark_pulsar.decode",
            "pyspark_pulsar.jobs",
            "pyspark_pulsar.sink",
            "pyspark_pulsar.spark",
        ),
        *("pyspark_pulsar.bundled.wire", "pyspark_pulsar.bundled.wire.generated"),
    ],
    package_dir={
        "pyspark_pulsar.bundled.wire": "../wire",
        "pyspark_pulsar.bundled.wire.generated": "../wire/generated",
    },
)
