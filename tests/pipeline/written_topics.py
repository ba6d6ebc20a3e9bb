"""Topics for tests of the sink.

Made and told to deduplicate by the admin REST, read by the pipeline's own reader, without Spark.
"""

import json
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any

from pipeline.pyspark_pulsar.client.admin import ledgers_of
from pipeline.pyspark_pulsar.client.split_reader import SplitReader
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.options import Access
from pipeline.pyspark_pulsar.plan import splits_of
from pipeline.pyspark_pulsar.positions import EARLIEST, end_of, ranges_between
from tests.clients.python_client import until
from tests.clients.server_process import Ready


def access(server: Ready, seconds: float = 60.0) -> Access:
    return Access(server.broker_url, server.web_url, timeout_seconds=seconds)


def put(server: Ready, path: str, body: object = None, method: str = "PUT") -> None:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.web_url}/admin/v2/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status in (200, 204)


def made(server: Ready, topic: str, partitions: int = 0, deduplicates: bool = False) -> str:
    """A topic that is there, and with `deduplicates` does so already."""
    path = topic.replace("://", "/")
    if partitions:
        put(server, f"{path}/partitions", partitions)
    else:
        put(server, path)
    put(
        server, f"{path}/subscription/keeps", {"ledgerId": -1, "entryId": -1}
    )  # without one a restart lets go of closed ledgers
    if deduplicates:
        put(server, f"{path}/deduplicationEnabled", True, "POST")
        for name in [f"{path}-partition-{index}" for index in range(partitions)] or [path]:
            until(lambda name=name: stats(server, name)["deduplicationStatus"] == "Enabled")  # type: ignore[misc]
    return topic


def stats(server: Ready, path: str) -> Any:
    with urllib.request.urlopen(f"{server.web_url}/admin/v2/{path}/stats", timeout=60) as answer:
        return json.load(answer)


def messages(server: Ready, topic: str, columns: tuple[str, ...] = ("value",), seconds: float = 60.0) -> list[dict[str, Any]]:
    """All rows of a partition or an unpartitioned topic, as a consumer gets them, in order. Waits for open transactions."""
    ledgers = ledgers_of(topic, access(server))
    found = []
    for split in splits_of(topic, ranges_between(ledgers, EARLIEST, end_of(ledgers)), 1 << 30):
        for rows in SplitReader(split, access(server, seconds), True):
            found += batch_of(rows, topic, columns).to_pylist()
    return found


def values(server: Ready, topic: str, seconds: float = 60.0) -> list[str]:
    return [each["value"].decode() for each in messages(server, topic, seconds=seconds)]


def abort_open_transactions(server: Ready) -> int:
    """Aborts all open transactions and returns their number, without those that end by themselves meanwhile."""
    root, count = f"{server.web_url}/admin/v3/transactions", 0
    with urllib.request.urlopen(f"{root}/slowTransactions/0", timeout=60) as answer:
        found = json.load(answer)
    for each in found.values():
        most, least = each["txnId"].strip("()").split(",")
        request = urllib.request.Request(f"{root}/abortTransaction/{most}/{least}", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60):
                count += 1
        except urllib.error.HTTPError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise
    return count
