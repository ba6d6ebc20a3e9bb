"""The records of a commit log: what was decided of a batch, and which transactions were opened for it. Pure.

JSON: `{"version": 1, "batch": 7, "transactions": [[most, least, [topics]], ...]}` is a decision, and
`{"version": 1, "batch": 7, "opened": [most, least]}` what a task notes before it writes.
"""

import json
from dataclasses import dataclass
from typing import Any

from ...errors import PipelineError
from ..entries import TxnId

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Written:
    """A task's transaction, and the topics that took part in it."""

    txn_id: TxnId
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """These transactions are the batch; no others of it are ever committed."""

    batch: int
    written: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """An attempt of a task began to write the batch in this transaction. Only a decision says whether it counts."""

    batch: int
    txn_id: TxnId


Record = Decision | Opened


def encode(record: Record) -> bytes:
    body: dict[str, Any] = {"version": _VERSION, "batch": record.batch}
    if isinstance(record, Opened):
        body["opened"] = [record.txn_id.most, record.txn_id.least]
    else:
        body["transactions"] = [[each.txn_id.most, each.txn_id.least, list(each.topics)] for each in record.written]
    return json.dumps(body).encode()


def decode(record: bytes, topic: str) -> Record:
    try:
        found = json.loads(record)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']}")
        if "opened" in found:
            return Opened(int(found["batch"]), TxnId(*map(int, found["opened"])))
        written = [Written(TxnId(most, least), tuple(topics)) for most, least, topics in found["transactions"]]
        return Decision(int(found["batch"]), tuple(written))
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{topic}: it has a message that is no record of a commit: {error}. Who else writes there?"
        ) from None
