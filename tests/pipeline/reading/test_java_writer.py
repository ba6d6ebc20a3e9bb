"""Topics that Apache's client for Java wrote, as tables: each row is what a reader in Java gets (`JavaTopics.java`)."""

import base64
import json
import shutil
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess
from tests.toolchain import QUICK_JAVA, maven_classpath, run_tool

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(900),  # on a machine that is busy with others a query takes minutes
    pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("java") is None, reason="no Java toolchain"),
]

JOBS = "tests.pipeline.spark_jobs"
PREFIX = "persistent://public/default/java-"
SOURCE = Path(__file__).parent / "JavaTopics.java"
POM = Path(__file__).parent.parent.parent / "clients" / "java" / "pom.xml"
BYTES = ("none", "lz4", "zlib", "zstd", "snappy")
Told = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def told(standalone: Ready, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Messages that the reader in Java got, by topic."""
    scratch = tmp_path_factory.mktemp("java")
    command = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", maven_classpath(POM, scratch), str(SOURCE)]
    output = run_tool([*command, standalone.broker_url, PREFIX], scratch, 600)
    found: Told = defaultdict(list)
    for line in output.splitlines():
        if line.startswith("{"):
            message = json.loads(line)
            found[message["of"]].append(message)
    return found


def milliseconds(time: datetime | None) -> int:
    """0: there is none."""
    return 0 if time is None else int(time.timestamp() * 1000 + 0.5)


def as_java_tells(row: dict[str, Any]) -> dict[str, Any]:
    """Columns that every message has, whatever its value is."""
    place = row["message_id"]
    return {
        "properties": row["properties"],
        "event_ms": milliseconds(row["event_time"]),
        "publish_ms": milliseconds(row["publish_time"]),
        "sequence_id": row["sequence_id"],
        "producer": row["producer"],
        "index": row["index"],
        "id": [place["ledger_id"], place["entry_id"], place["batch_index"]],
    }


def plain(value: Any) -> Any:
    """Value as JSON has it: bytes in base 64."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def rows(spark: SparkProcess, options: dict[str, str], *names: str, **more: str) -> list[dict[str, Any]]:
    asked = {**options, "topics": ",".join(f"{PREFIX}{name}" for name in names), **more}
    found: list[dict[str, Any]] = spark.run(f"{JOBS}:rows", options=asked)
    return sorted(found, key=lambda row: (row["topic"], *row["message_id"].values()))


def test_bytes_in_batches_of_every_compression_and_in_chunks_are_what_java_reads(
    spark: SparkProcess, options: dict[str, str], told: Told
) -> None:
    topics = sorted([*(f"bytes-{each}" for each in BYTES), "chunks"])
    expected = [each for name in topics for each in told[name]]
    assert len(expected) == 35 * len(BYTES) + 5
    found = rows(spark, options, *topics)
    for row, java in zip(found, expected, strict=True):
        assert as_java_tells(row) == {name: java[name] for name in as_java_tells(row)}
        assert plain(row["key"]) == java["key"]
        assert plain(row["value"]) == (None if java["is_null"] else java["bytes"])


@pytest.mark.parametrize("name", ["avro", "json", "native"])
def test_values_with_a_schema_are_what_java_reads(spark: SparkProcess, options: dict[str, str], told: Told, name: str) -> None:
    assert len(told[name]) == 10
    for row, java in zip(rows(spark, options, name), told[name], strict=True):
        assert as_java_tells(row) == {name: java[name] for name in as_java_tells(row)}
        assert plain(row["value"]) == java["typed"]


def test_protobuf_by_its_avro_definition_is_what_java_reads(spark: SparkProcess, options: dict[str, str], told: Told) -> None:
    """The registry has names and types of the fields, as Avro calls them."""
    found = rows(spark, options, "protobuf")
    assert [plain(each["value"]) for each in found] == [each["typed"] for each in told["protobuf"]]


@pytest.mark.parametrize("name", ["separated", "inline"])
def test_pairs_of_key_and_value_are_what_java_reads(
    spark: SparkProcess, options: dict[str, str], told: Told, name: str
) -> None:
    found = rows(spark, options, name)
    assert len(found) == 10
    assert [{"key": plain(each["key"]), "value": plain(each["value"])} for each in found] == [
        each["typed"] for each in told[name]
    ]


def test_an_encrypted_message_is_reported_with_the_bytes_that_java_reads_without_the_key(
    spark: SparkProcess, options: dict[str, str], told: Told
) -> None:
    [java] = told["encrypted"]
    with pytest.raises(JobFailed, match=rf"{PREFIX}encrypted at {java['id'][0]}:{java['id'][1]}.*encrypted"):
        rows(spark, options, "encrypted")
    [found] = rows(spark, options, "encrypted", mode="PERMISSIVE")
    assert plain(found["value"]) == java["bytes"]
    assert "it is encrypted" in found["error"]
    assert as_java_tells(found) == {name: java[name] for name in as_java_tells(found)}


def test_encrypted_batches_and_chunks_are_a_row_each_and_leave_other_rows_as_they_are(
    spark: SparkProcess, options: dict[str, str], told: Told
) -> None:
    """Messages of an encrypted batch cannot be found without the key: the batch is one row, as in Java."""
    java = told["encrypted-among"]
    found = rows(spark, options, "encrypted-among", mode="PERMISSIVE")
    assert [as_java_tells(each) for each in found] == [{name: each[name] for name in as_java_tells(found[0])} for each in java]
    assert [plain(each["value"]) for each in found] == [each["bytes"] for each in java]
    open_ones = [each for each in found if each["producer"] == "java-encrypted-among"]
    assert [(each["producer"], each["error"]) for each in found if each["error"]] == [
        (name, f"{PREFIX}encrypted-among at {place(each)}: it is encrypted, and there are no keys here")
        for each in found
        if (name := each["producer"]) in ("batches", "alone")
    ]
    assert (len(open_ones), len(found)) == (7, 9)
    dropped = rows(spark, options, "encrypted-among", mode="DROPMALFORMED", columns="value,topic,message_id")
    assert [each["value"] for each in dropped] == [each["value"] for each in open_ones]
    [in_chunks] = rows(spark, options, "encrypted-chunks", mode="PERMISSIVE")
    assert "it is encrypted" in in_chunks["error"]
    assert len(in_chunks["value"]) > 2500


def place(row: dict[str, Any]) -> str:
    return f"{row['message_id']['ledger_id']}:{row['message_id']['entry_id']}"
