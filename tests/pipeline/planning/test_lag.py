"""Distance of a stream from the end of its topics, by the offsets in a query's progress."""

import json
from typing import Any

import pytest

from pipeline.pyspark_pulsar.errors import PipelineError
from pipeline.pyspark_pulsar.lag import entries_behind
from pipeline.pyspark_pulsar.positions import Place
from pipeline.pyspark_pulsar.stream_offsets import offset_json
from tests.clients.python_client import ask, published
from tests.clients.server_process import Ready
from tests.pipeline.written_topics import made

pytestmark = pytest.mark.clients


def progress(*offsets: object) -> dict[str, Any]:
    return {"id": "query", "sources": [{"description": "a source", "endOffset": each} for each in offsets]}


def test_the_entries_behind_an_offset_are_counted_over_ledgers_and_topics(
    standalone: Ready, options: dict[str, str], topic: str
) -> None:
    first, other = made(standalone, f"{topic}-a"), made(standalone, f"{topic}-b")
    ids = published(standalone, first, 10)
    ask(standalone, f"{first.replace('://', '/')}/unload", {}, "PUT")
    published(standalone, first, 5)
    given = {**options, "topics": f"{first},{other}"}
    offset = offset_json({first: Place(ids[6].ledger_id(), ids[6].entry_id() + 1), other: Place(-1, -1)})
    assert entries_behind(progress(offset), given) == {first: 8, other: 0}
    published(standalone, other, 2)
    assert entries_behind(progress(json.dumps(offset)), given) == {first: 8, other: 2}
    # what another source of the query says is none of ours; of two of ours the one that is farther behind counts
    ahead = offset_json({first: Place(ids[9].ledger_id(), ids[9].entry_id() + 1)})
    assert entries_behind(progress("7", ahead, offset, {"logOffset": 3}), given) == {first: 8, other: 2}
    assert entries_behind(progress(ahead), given) == {first: 5, other: 2}, "a topic that the stream has not seen"


@pytest.mark.parametrize("found", [None, progress(), progress(None), progress("None"), progress("7")])
def test_a_progress_without_an_offset_of_ours_is_refused(found: dict[str, Any] | None, options: dict[str, str]) -> None:
    with pytest.raises(PipelineError, match="no offset of a topic"):
        entries_behind(found, {**options, "topic": "orders"})
