"""land: new messages of topics since the last run, to Parquet. Every batch appears at one stroke, and once (`landed_place`).

A run that died, for want of space or anything else, leaves the batch that it was at to the next run, which reads the same
messages again: its offsets are in `checkpoint`. Needs a file system that renames at one stroke (local, HDFS).
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...client.admin import ledgers_of_all
from ...client.brokers import topics_of
from ...errors import WrongOption
from ...options import parse_options, refuse_misplaced
from ...positions import EARLIEST, Ledger, end_of, ranges_between
from ..progress import Progress
from ..report import Report, Table
from .landed_place import LandedPlace, NotLanded
from .origin import origin_of
from .spark_errors import reason


def add_arguments(job: argparse.ArgumentParser) -> None:
    chosen = job.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--topics", default="", help="with commas between")
    chosen.add_argument("--topics-pattern", default="", help="a regular expression over the names of one namespace")
    job.add_argument("--to", required=True, metavar="DIRECTORY", help="data/ and checkpoint/ are made in it")
    job.add_argument("--max-messages", type=int, default=1_000_000, help="of one batch, about")
    job.add_argument("--accept-change", action="store_true", help="though topics or brokers are others than those landed there")


def check(arguments: argparse.Namespace, given: dict[str, str]) -> None:
    """Ask the broker for the topics before Spark is started, which takes seconds. Errors are those of the source."""
    source = parse_options(_source_options(arguments, given), is_stream=True)
    ledgers_of_all(topics_of(source), source.access, skips_absent=bool(source.pattern))


def _source_options(arguments: argparse.Namespace, given: Mapping[str, str]) -> dict[str, str]:
    """WrongOption."""
    if arguments.max_messages < 1:
        raise WrongOption(f"--max-messages {arguments.max_messages}: expected a whole number from 1 on")
    named = {"topics": arguments.topics} if arguments.topics else {"topicsPattern": arguments.topics_pattern}
    options = {"startingoffsets": "earliest", **{name.lower(): value for name, value in {**given, **named}.items()}}
    refuse_misplaced(options, is_stream=True)
    return options


def run(arguments: argparse.Namespace, given: dict[str, str], spark: Any) -> Report:
    """Until what is there now is landed. Errors are those of the source, and NotLanded."""
    options = _source_options(arguments, given)
    source = parse_options(options, is_stream=True)
    topics = topics_of(source)
    ledgers = ledgers_of_all(topics, source.access, skips_absent=bool(source.pattern))
    place, origin = LandedPlace(spark, arguments.to), origin_of(source)
    place.check_goes_on(origin, arguments.accept_change)
    facts = {"topics": arguments.topics or arguments.topics_pattern, "to": arguments.to}
    if arguments.dry_run:
        return _planned(spark, options, place, topics, facts)
    place.prepare(origin)
    way = _Way(ledgers, place)
    try:
        return _landed(spark, {"maxmessagespertrigger": str(arguments.max_messages), **options}, place, facts, way)
    except BaseException:
        way.progress.end()
        place.take_back()
        raise


class _Way:
    """Progress of a run in entries: those that exist now, and those that are landed."""

    def __init__(self, ledgers: Mapping[str, Sequence[Ledger]], place: LandedPlace) -> None:
        self._ledgers, self._place, self.progress = ledgers, place, Progress("land, entries")
        self._total = self._left()
        self.progress.say(0, self._total)

    def _left(self) -> int:
        reached = self._place.reached()
        ranges = [ranges_between(of, reached.get(topic, EARLIEST), end_of(of)) for topic, of in self._ledgers.items()]
        return sum(each.count for each in itertools.chain.from_iterable(ranges))

    def tell(self) -> None:
        self.progress.say(self._total - self._left(), self._total)


def _landed(spark: Any, options: dict[str, str], place: LandedPlace, facts: dict[str, Any], way: _Way) -> Report:
    landed: list[tuple[int, int]] = []

    def write(frame: Any, batch: int) -> None:
        landed.append((batch, place.land(frame, batch)))
        way.tell()

    stream = spark.readStream.format("pulsar").options(**options).load()
    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{facts['to']}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception as error:
        why = f"ended {_position(place)}: {reason(str(error))}"
        raise NotLanded(
            f"{facts['topics']} to {facts['to']}: {why}. What is under data/ is whole; run it again when that is mended, and "
            "it goes on there"
        ) from error
    finally:
        if query.isActive:
            query.stop()
    way.progress.end()
    counts = {"batches": len(landed), "messages": sum(count for _, count in landed)}
    return Report("land", {**facts, **counts}, [Table("batches", ("batch", "messages"), landed, bars="messages")])


def _position(place: LandedPlace) -> str:
    """Behind which nothing is landed, topic by topic."""
    found = place.reached()
    return "after " + ", ".join(f"{topic} {each}" for topic, each in found.items()) if found else "before its first batch"


def _planned(spark: Any, options: dict[str, str], place: LandedPlace, topics: list[str], facts: dict[str, Any]) -> Report:
    """Report of the messages there are to land, without the limits of a batch: nothing is written."""
    of_batches = {name: value for name, value in options.items() if name != "predefinedsubscription"}
    if reached := {topic: str(each) for topic, each in place.reached().items() if topic in topics}:
        of_batches["startingoffsets"] = json.dumps(reached)
    frame = spark.read.format("pulsar").options(**of_batches).option("columns", "topic").load()
    counts = [(row["topic"], row["count"]) for row in frame.groupBy("topic").count().orderBy("topic").collect()]
    total = {"messages that would be landed": sum(count for _, count in counts)}
    return Report("land", {**facts, **total}, [Table("by topic", ("topic", "messages"), counts, bars="messages")])
