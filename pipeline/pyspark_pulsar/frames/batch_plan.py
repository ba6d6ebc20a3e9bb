"""Plan of a batch: the topics' ledgers are looked at once, and the batch reads what was there then."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..client.admin import ledgers_of_all, unacknowledged_of
from ..client.brokers import topics_of
from ..holes import Unacknowledged
from ..options import SourceOptions
from ..plan import Split, since, splits_of
from ..positions import Ledger, check_start, end_of, ranges_between


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Splits in the order of the topics. `left`: by topic, what a subscription has not acknowledged of these splits."""

    splits: list[Split]
    left: Mapping[str, Unacknowledged] = field(default_factory=dict)


def plan_of(options: SourceOptions, only: Collection[str] | None = None) -> BatchPlan:
    """`only`: of these topics alone. NoSuchTopic, NoSuchPosition, DataLost, Refused, Unreachable."""
    topics = [each for each in topics_of(options) if only is None or each in only]
    if options.subscription:
        return _unacknowledged(topics, options)
    found = ledgers_of_all(topics, options.access, options.reads_bookies, skips_absent=bool(options.pattern))
    return BatchPlan([split for topic, ledgers in found.items() for split in _splits(topic, ledgers, options)])


def _unacknowledged(topics: Sequence[str], options: SourceOptions) -> BatchPlan:
    found = {topic: unacknowledged_of(topic, options.subscription, options.access, options.reads_bookies) for topic in topics}
    splits = [split for topic, left in found.items() for split in splits_of(topic, left.ranges, options.split_bytes)]
    return BatchPlan(splits, {topic: left for topic, left in found.items() if left.parts or left.done})


def _splits(topic: str, ledgers: Sequence[Ledger], options: SourceOptions) -> Iterator[Split]:
    start, end = options.starting.of(topic), min(options.ending.of(topic), end_of(ledgers))
    check_start(topic, ledgers, start, options.fails_on_data_loss)
    recent = since(ledgers, options.between.starting_time_ms, options.clocks_ahead_ms)
    return splits_of(topic, ranges_between(recent, start, end), options.split_bytes)
