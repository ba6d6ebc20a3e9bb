"""Topics as Arrow tables and record batches in this process. Users import `pulsar_frames`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow

from ..errors import WrongOption
from ..holes import Unacknowledged
from ..options import SourceOptions, parse_options, refuse_misplaced
from .batch_plan import plan_of
from .column_types import arrow_schema, chosen_columns, registry_schema
from .split_batches import Asked, batches_of

Limit = str | datetime
"""A place as the option startingOffsets has it, or a publish time; UTC where that has no zone."""


def read(
    service_url: str,
    topic: str | Sequence[str],
    *,
    admin_url: str,
    start: Limit = "earliest",
    end: Limit = "latest",
    columns: Sequence[str] = (),
    values: str = "schema",
    auth_params: str = "",
    options: Mapping[str, str] | None = None,
) -> Any:
    """A `pyarrow.Table` of what is there now from `start` to before `end`, in order; all of it is in memory.

    `options`: more of those of the source on Spark, by their names there. PipelineError.
    """
    asked = _asked(_given(service_url, admin_url, topic, (start, end), columns, values, auth_params, options))
    return pyarrow.Table.from_batches(_batches(asked), asked.frame)


def batches(
    service_url: str,
    topic: str | Sequence[str],
    *,
    admin_url: str,
    start: Limit = "earliest",
    end: Limit = "latest",
    columns: Sequence[str] = (),
    values: str = "schema",
    auth_params: str = "",
    options: Mapping[str, str] | None = None,
) -> Any:
    """The same a record batch at a time, as a `pyarrow.RecordBatchReader`: one block of some MB is in memory. PipelineError.

    The plan is made before the first batch is asked for; the errors of reading come while it is iterated.
    """
    asked = _asked(_given(service_url, admin_url, topic, (start, end), columns, values, auth_params, options))
    return pyarrow.RecordBatchReader.from_batches(asked.frame, _batches(asked))


def _given(
    service_url: str,
    admin_url: str,
    topic: str | Sequence[str],
    limits: tuple[Limit, Limit],
    columns: Sequence[str],
    values: str,
    auth_params: str,
    more: Mapping[str, str] | None,
) -> dict[str, str]:
    """Arguments as options of the source; an argument wins over the same option in `more`. WrongOption."""
    given = {name: str(value) for name, value in (more or {}).items()}
    given |= {"service.url": service_url, "admin.url": admin_url, "values": values}
    given |= {"topic": topic} if isinstance(topic, str) else {"topics": ",".join(topic)}
    for side, limit in zip(("starting", "ending"), limits, strict=True):
        given |= _limit(side, limit)
    if isinstance(columns, str):
        raise WrongOption(f"columns={columns!r}: expected a list of names, such as [{columns!r}]")
    if columns:
        given["columns"] = ",".join(columns)
    if auth_params:
        given["pulsar.client.authParams"] = auth_params
    return given


def _limit(side: str, limit: Limit) -> dict[str, str]:
    if isinstance(limit, datetime):
        return {f"{side}Time": limit.isoformat()}
    is_default = limit == {"starting": "earliest", "ending": "latest"}[side]
    return {} if is_default else {f"{side}Offsets": limit}


def _asked(given: Mapping[str, str]) -> Asked:
    refuse_misplaced(given, is_stream=False)
    options = parse_options(given, is_stream=False)
    return _of_topics(options)


def _of_topics(options: SourceOptions) -> Asked:
    chosen = chosen_columns(options)
    of_topics = registry_schema(options)
    whole = arrow_schema(of_topics)
    return Asked(options, pyarrow.schema([whole.field(name) for name in chosen]), of_topics)


def _batches(asked: Asked) -> Iterator[Any]:
    plan = plan_of(asked.options)
    return (
        batch for split in plan.splits for batch in batches_of(split, asked, plan.left.get(split.topic, Unacknowledged([])))
    )
