"""Messages in chunks on Spark, as Apache's client cuts them: rows of a batch and of a stream, wherever either is cut."""

import hashlib
import random

import pytest

from tests.clients.python_client import quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.chunk_sender import send_chunks
from tests.pipeline.spark_process import JobFailed, SparkProcess

JOBS = "tests.pipeline.spark_jobs"
MB = 1 << 20


def digest(value: bytes) -> tuple[int, str]:
    return len(value), hashlib.md5(value, usedforsecurity=False).hexdigest()


def test_a_message_in_chunks_is_one_row_of_a_batch_and_of_a_stream_wherever_they_are_cut(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = random.Random(5)
    values = [b"small", chance.randbytes(11 * MB), b"between", chance.randbytes(6 * MB), b"last"]
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(topic, batching_enabled=False, chunking_enabled=True)
        for each in values:
            producer.send(each)
    finally:
        client.close()
    expected = [digest(each) for each in values]
    asked = {**options, "topic": topic, "startingOffsets": "earliest"}
    assert spark.run(f"{JOBS}:digests", options=asked) == expected
    # every entry a task of its own
    assert spark.run(f"{JOBS}:digests", options={**asked, "splitBytes": "1"}) == expected

    directory = tmp_path_factory.mktemp("stream")
    batches = spark.run(
        f"{JOBS}:stream_to_parquet",
        options={**asked, "maxMessagesPerTrigger": "2"},
        to=str(directory / "table"),
        checkpoint=str(directory / "checkpoint"),
        columns=["length(value) length", "md5(value) digest"],
    )
    found = spark.run(f"{JOBS}:table", path=str(directory / "table"))
    assert sorted((each["length"], each["digest"]) for each in found) == sorted(expected)
    assert batches > 1


def test_a_message_whose_first_chunks_are_gone_fails_or_is_a_row_with_the_reason(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """Chunks of a producer that was cut off in the middle: the rest of a message that began in another topic's time."""
    send_chunks(standalone, topic, [b"one", b"two", b"three"], first=1)
    asked = {**options, "topic": topic}
    with pytest.raises(JobFailed, match=rf"{topic} at \d+:1: it is the last of 3 chunks of a message, and chunk 0"):
        spark.run(f"{JOBS}:rows", options=asked)
    [found] = spark.run(f"{JOBS}:rows", options={**asked, "mode": "PERMISSIVE"})
    assert "chunk 0 (of 0 to 2) is not before it" in found["error"]
    assert spark.run(f"{JOBS}:rows", options={**asked, "mode": "DROPMALFORMED"}) == []
