"""`spark.readStream.format("pulsar")`: offsets, limits and splits on the driver; tasks read as those of a batch do.

The driver keeps one process for a query, and this object with it. Every answer is made of the topics' ledgers at that moment
and of the offsets that Spark gives; nothing else is remembered for a batch but where a run of Trigger.AvailableNow ends.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow

from ..client.admin import ledgers_of_all
from ..client.brokers import topics_of
from ..client.mirror import Mirror
from ..errors import DataLost, NoSuchTopic, Refused
from ..frames.split_batches import Asked
from ..plan import Split, since, splits_of
from ..positions import EARLIEST, LATEST, Ledger, Place, check_batch, check_start, end_of, ranges_between, told
from ..stream_offsets import Limit, admitted, backlog, begun, beyond_closed, cut_at, mirrored, offset_json, places_in
from .partitions import partitions_of, read, sampled

_log = logging.getLogger(__name__)


class PulsarStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Exact offsets: what lies between two of them is the same whenever it is read, as long as it is there."""

    def __init__(self, asked: Asked) -> None:
        self._options, self._asked = asked.options, asked
        self._goal: dict[str, Place] | None = None
        self._mirror: Mirror | None = None
        self._found: dict[str, list[Ledger]] | None = None
        self._gone: set[str] = set()

    def initialOffset(self) -> dict[str, Any]:
        return offset_json({topic: self._start(topic, ledgers) for topic, ledgers in self._ledgers().items()})

    def _start(self, topic: str, ledgers: Sequence[Ledger]) -> Place:
        """Now, and not with the first batch: behind a place that is not there no message ever comes."""
        options, place = self._options, self._options.starting.of(topic)
        check_start(topic, ledgers, place, options.fails_on_data_loss)
        if place != EARLIEST:
            return begun(ledgers, place)
        recent = since(ledgers, options.between.starting_time_ms, options.clocks_ahead_ms)
        return begun(recent, EARLIEST) if recent else end_of(ledgers)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.messages_per_trigger_max is not None:
            return ReadMaxRows(self._options.messages_per_trigger_max)
        if self._options.bytes_per_trigger_max is not None:
            return ReadMaxBytes(self._options.bytes_per_trigger_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Sets the goal of this run to all data that are there now; limits decide the number of batches."""
        self._goal = {topic: begun(ledgers, LATEST) for topic, ledgers in self._ledgers().items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        before, starts = self._found or {}, places_in(start)
        ledgers = self._found = self._ledgers()
        self._tell_gone(before, starts, ledgers)
        # Spark tells of a batch that is done when it builds the next one alone, and of the last one never: what the next batch
        # starts from is in the checkpoint, so that all before it is done
        self._follow({topic: mirrored(ledgers[topic], place) for topic, place in starts.items() if topic in ledgers})
        # a topic that came later is read from its first message; one that is gone stays where it was
        starts |= {topic: begun(found, EARLIEST) for topic, found in ledgers.items() if topic not in starts}
        backlogs = {topic: backlog(self._until_goal(topic, ledgers[topic]), starts[topic]) for topic in ledgers}
        limits = self._limit(limit)
        if limits.messages is not None:
            backlogs = {topic: sampled(topic, found, self._options) for topic, found in backlogs.items()}
        ends = admitted(starts, backlogs, limits)
        return offset_json({topic: beyond_closed(ledgers.get(topic, ()), end) for topic, end in ends.items()})

    def _tell_gone(
        self, before: Mapping[str, Sequence[Ledger]], starts: Mapping[str, Place], ledgers: Mapping[str, Sequence[Ledger]]
    ) -> None:
        """A topic of a pattern, or a partition, that is not there any more: DataLost where it had more than was read.

        It is not known what a topic had that went while the query was stopped: DataLost for a partition, which does not go by
        itself; a warning for a topic of a pattern.
        """
        for topic in starts.keys() - ledgers.keys() - self._gone:
            self._gone.add(topic)
            if topic in before and starts[topic] >= end_of(before[topic]):
                _log.info("%s: it was deleted; all that was seen of it is read", topic)
                continue
            is_certain = topic in before or not self._options.pattern
            lost = DataLost(f"{topic}: it was deleted; what it had from {starts[topic]} on is missing")
            told(lost, is_certain and self._options.fails_on_data_loss)

    def commit(self, end: dict[str, Any]) -> None:
        found = self._found or {}
        self._follow({topic: mirrored(found.get(topic, ()), place) for topic, place in places_in(end).items()})

    def _follow(self, places: dict[str, Place]) -> None:
        """Moves the subscription that mirrors the stream, if the options name one. A topic that is gone has none."""
        if not self._options.subscription:
            return
        if self._mirror is None:
            self._mirror = Mirror(self._options.subscription, self._options.access)
        for topic, place in places.items():
            try:
                self._mirror.follow({topic: place})
            except (NoSuchTopic, Refused) as error:
                # the data are read and safe: the query does not end because of the mirror
                _log.warning("%s", error)

    def reportLatestOffset(self) -> dict[str, Any]:
        """Offset that `latestOffset` found just before, when Spark asked: there may be a thousand topics."""
        ledgers = self._found if self._found is not None else self._ledgers()
        return offset_json({topic: begun(found, LATEST) for topic, found in ledgers.items()})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        starts, ends = places_in(start), places_in(end)
        moved = [topic for topic, until in ends.items() if starts.get(topic) != until]
        ledgers = ledgers_of_all(moved, self._options.access, self._options.reads_bookies, skips_absent=True)
        splits = [split for topic in moved for split in self._splits(topic, ledgers.get(topic), starts.get(topic), ends[topic])]
        return partitions_of(splits, self._options.split_bytes)

    def _splits(self, topic: str, ledgers: Sequence[Ledger] | None, start: Place | None, end: Place) -> Iterator[Split]:
        if ledgers is None:
            lost = DataLost(f"{topic}: deleted before it was read up to {end}; all from {start or EARLIEST} on is missing")
            told(lost, self._options.fails_on_data_loss)
            return
        begin = EARLIEST if start is None else start
        check_batch(topic, ledgers, start, end, self._options.fails_on_data_loss)
        yield from splits_of(topic, ranges_between(ledgers, begin, end), self._options.split_bytes)

    def read(self, partition: Any) -> Iterator[Any]:
        return read(partition, self._asked)

    def _limit(self, limit: ReadLimit) -> Limit:
        """Spark passes one limit; where it is ours, the other option holds as well."""
        if isinstance(limit, ReadAllAvailable):
            return Limit()
        return Limit(self._options.messages_per_trigger_max, self._options.bytes_per_trigger_max)

    def _until_goal(self, topic: str, ledgers: Sequence[Ledger]) -> list[Ledger]:
        if self._goal is None:
            return list(ledgers)
        return cut_at(ledgers, self._goal.get(topic, EARLIEST))

    def _ledgers(self) -> dict[str, list[Ledger]]:
        options = self._options
        return ledgers_of_all(topics_of(options), options.access, skips_absent=bool(options.pattern))
