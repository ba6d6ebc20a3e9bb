"""dead-letters: a list of dead letters and their causes; `--redrive` sends them back to their topics. No Spark."""

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...client.brokers import topics_of
from ...errors import WrongOption
from ...holes import Unacknowledged
from ...names import full_name
from ...options import SourceOptions, parse_options
from ...sink.options import AT_LEAST_ONCE, DEDUPLICATION, parse_sink_options
from ..arguments import pairs
from ..copies.replay import shared_options
from ..copies.topic_spans import batches_of_range, refuse_other_rows, spans_of
from ..progress import Progress
from ..report import Report, Table
from .held_letters import is_there, left
from .letter_causes import COLUMNS, GROUP_COLUMNS, Groups, Letter, letters_of
from .letter_filter import parse_filter
from .redrive import Redrive, Redriven, redriven, target_of


def add_arguments(job: argparse.ArgumentParser) -> None:
    chosen = job.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--topics", default="", help="dead letter topics, with commas between")
    chosen.add_argument("--topics-pattern", default="", help="a regular expression over the names of one namespace")
    job.add_argument("--where", action="append", default=[], metavar="CONDITION", help="FIELD=TEXT, !=, ~ or !~; all must hold")
    job.add_argument("--cause", default="", metavar="PROPERTY", help="the property that says why; else one that sounds like it")
    job.add_argument("--subscription", default="redrive", help="which says what is done (default redrive)")
    job.add_argument("--redrive", action="store_true", help="send them back, and acknowledge each when its copy is stored")
    job.add_argument("--to", default="", metavar="TOPIC", help="there, and not to the topics that they came from")
    job.add_argument("--name", default="redrive", help="of the producers (default redrive)")
    job.add_argument("--guarantee", default="deduplication", help="or at-least-once, for topics that do not deduplicate")
    job.add_argument("--sink-option", action="append", default=[], metavar="NAME=VALUE", help="one more option of the sink")


def run(arguments: argparse.Namespace, given: Mapping[str, str], progress: Progress) -> Report:
    """Errors are those of source and sink. A redrive that died is run again with the same filter."""
    named = {"topics": arguments.topics} if arguments.topics else {"topicsPattern": arguments.topics_pattern}
    source = parse_options({**given, **named, "values": "raw"}, is_stream=False)
    refuse_other_rows(source)
    _check(arguments, given, source)
    wanted = parse_filter(arguments.where)
    how = Redrive(
        arguments.name, arguments.subscription, wanted, arguments.to, arguments.cause, source, _target(arguments, given)
    )
    if arguments.redrive and not arguments.dry_run:
        return _redriven(how, progress)
    return _triaged(how, progress, arguments.redrive)


def _check(arguments: argparse.Namespace, given: Mapping[str, str], source: SourceOptions) -> None:
    """WrongOption for what would be passed over, or cannot be kept."""
    for name in given:
        if name.lower() in ("startingoffsets", "endingoffsets"):
            raise WrongOption(
                f"option {name}: what the subscription has not acknowledged is looked at; --where says what is meant"
            )
    if not arguments.subscription:
        raise WrongOption("--subscription: a name is needed")
    if arguments.guarantee.upper() not in (AT_LEAST_ONCE, DEDUPLICATION):
        raise WrongOption(f"--guarantee {arguments.guarantee}: expected deduplication or at-least-once")
    if arguments.to and (
        full_name(arguments.to) in source.topics or (source.pattern and re.fullmatch(source.pattern, full_name(arguments.to)))
    ):
        raise WrongOption(f"--to {arguments.to}: the letters are there already")


def _target(arguments: argparse.Namespace, given: Mapping[str, str]) -> Any:
    own = pairs("--sink-option", arguments.sink_option)
    chosen = {"guarantee": arguments.guarantee, "writeId": arguments.name}
    return parse_sink_options({**shared_options(given), **own, **chosen})


def _triaged(how: Redrive, progress: Progress, is_redrive: bool) -> Report:
    """Counts by cause; of a redrive's dry run also where they would go."""
    groups, targets, all_letters = Groups(), Counter[str](), 0
    for letter in _letters(how, progress):
        all_letters += 1
        if how.wanted.holds(letter):
            groups.add([letter])
            if is_redrive:
                targets[target_of(letter, how.to)] += 1
    facts: dict[str, Any] = {"letters": all_letters, "letters that are meant": groups.count, "causes": len(groups.found)}
    tables = [Table("by cause", GROUP_COLUMNS, groups.rows(), bars="letters")]
    if is_redrive:
        facts["would be sent"] = sum(targets.values())
        tables.append(Table("where they would go", ("topic", "letters"), targets.most_common(), bars="letters"))
    is_fine = is_redrive or not groups.count
    return Report("dead-letters", facts, tables, is_fine=is_fine, findings=() if is_fine else groups.findings())


def _letters(how: Redrive, progress: Progress) -> Iterator[Letter]:
    spans = [(topic, _left(topic, how)) for topic in topics_of(how.source)]
    total, done = sum(each.count for _, found in spans for each in found.ranges), 0
    for topic, found in spans:
        for each in found.ranges:
            for batch in batches_of_range(topic, each, how.source, COLUMNS, found.parts):
                yield from letters_of(batch, topic, how.cause_property)
            done += each.count
            progress.say(done, total)
    progress.end()


def _left(topic: str, how: Redrive) -> Unacknowledged:
    """Letters that are not yet redriven; all letters of a topic that was never redriven."""
    if is_there(topic, how.subscription, how.source):
        return left(topic, how.subscription, how.source)
    return Unacknowledged([part for span in spans_of(_only(topic, how.source)) for part in span.ranges])


def _only(topic: str, source: SourceOptions) -> SourceOptions:
    return replace(source, topics=(topic,), pattern="")


def _redriven(how: Redrive, progress: Progress) -> Report:
    topics = topics_of(how.source)
    done = [Redriven() for _ in topics]
    total = sum(each.count for topic in topics for each in _left(topic, how).ranges)
    for topic, each in zip(topics, done, strict=True):
        for _ in redriven(topic, how, each):
            progress.say(min(total, sum(one.entries for one in done)), total)
    progress.say(total, total)
    progress.end()
    sent = Counter[str]()
    for each in done:
        sent.update(each.sent)
    facts = {
        "topics": len(topics),
        "letters": sum(each.looked_at for each in done),
        "sent": sum(sent.values()),
        "sent before, and dropped": sum(each.repeated for each in done),
        "entries acknowledged": sum(each.acknowledged_entries for each in done),
        "guarantee": how.target.guarantee.lower(),
    }
    return Report("dead-letters", facts, [Table("where they went", ("topic", "letters"), sent.most_common(), bars="letters")])
