"""Compaction and offloading: what a broker does for a while, told as sentences."""

import time
from collections.abc import Mapping
from typing import Any

from cli.admin.context import CommandFailed, Context
from cli.admin.request import get, put, topic_name

POLL_SECONDS = 1.0


def _status(context: Context, path: str) -> Mapping[str, Any]:
    """The status at once, or with --wait-complete the status at the end."""
    while True:
        status: Mapping[str, Any] = context.ask(get(path)) or {}
        if status.get("status") != "RUNNING" or not context.values["wait-complete"]:
            return status
        time.sleep(POLL_SECONDS)


def compaction_status(context: Context) -> None:
    topic = topic_name(context.values["topic"])
    _tell(context, "Compaction", str(topic), _status(context, f"{topic.path}/compaction"))


def offload_status(context: Context) -> None:
    topic = topic_name(context.values["topic"])
    _tell(context, "Offload", str(topic), _status(context, f"{topic.path}/offload"))


def _tell(context: Context, what: str, topic: str, status: Mapping[str, Any]) -> None:
    match status.get("status"):
        case "NOT_RUN":
            context.write(f"{what} has not been run for {topic} since broker startup")
        case "RUNNING":
            context.write(f"{what} is currently running")
        case "SUCCESS":
            context.write(f"{what} was a success")
        case _:
            context.write(f"Error in {what.lower()}")
            raise CommandFailed(f"Error {what.lower()[:-1] if what == 'Offload' else 'compact'}ing: {status.get('lastError')}")


def offload(context: Context) -> None:
    """Up to the message before which more than the threshold would stay in bookies."""
    topic = topic_name(context.values["topic"])
    stats = context.ask(get(f"{topic.path}/internalStats?metadata=false")) or {}
    ledgers = stats.get("ledgers") or []
    if ledgers:
        ledgers[-1]["size"] = stats.get("currentLedgerSize", 0)
    first_kept = _first_kept(ledgers, context.values["size-threshold"])
    if first_kept is None:
        context.write("Nothing to offload")
        return
    body = {"ledgerId": first_kept, "entryId": 0, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}
    context.ask(put(f"{topic.path}/offload", body))
    context.write(f"Offload triggered for {topic} for messages before {first_kept}:0:-1")


def _first_kept(ledgers: list[Mapping[str, Any]], threshold_bytes: int) -> int | None:
    """The ledger whose messages stay with all after it; the last one, which is open, always does."""
    kept_bytes = 0
    for index in range(len(ledgers) - 1, 0, -1):
        kept_bytes += int(ledgers[index].get("size", 0))
        before = ledgers[index - 1]
        if kept_bytes + int(before.get("size", 0)) > threshold_bytes and not before.get("offloaded"):
            return int(ledgers[index]["ledgerId"])
    return None
