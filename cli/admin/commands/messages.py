"""Messages of a topic, shown: a header, properties, the payload as a dump. A batch is taken apart here, as by Apache's tool."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote

from cli.admin.commands.single_messages import messages_of_batch
from cli.admin.context import CommandFailed, Context
from cli.admin.http import Answer, Refused
from cli.admin.output import GAP, dump
from cli.admin.request import get, topic_name

RULE = "-" * 73
BATCH_MESSAGES, BATCH_BYTES = "x-pulsar-num-batch-message", "x-pulsar-batch-size"


class Shown(NamedTuple):
    """One message. Times in milliseconds, 0 for none."""

    message_id: str
    publish_time: int
    event_time: int
    properties: Mapping[str, str]
    payload: bytes
    batched: bool


def peek(context: Context) -> None:
    """The first --count entries of a subscription's backlog."""
    topic, subscription = topic_name(context.values["topic"]), quote(context.values["subscription"], safe="")
    first = True
    left = context.values["count"]
    position = 1
    while left > 0:
        try:
            answer = context.connection.ask(get(f"{topic.path}/subscription/{subscription}/position/{position}"))
        except Refused as refused:
            if refused.status != 404:
                raise
            break
        for message in list(messages(answer))[:left]:
            if not first:
                context.write(f"{RULE}\n")
            first = False
            left -= 1
            _write(context, message)
        position += 1


def examine(context: Context) -> None:
    """One message, counted from the beginning or the end."""
    values = context.values
    query = f"initialPosition={quote(values['initialPosition'], safe='')}&messagePosition={values['messagePosition']}"
    answer = context.connection.ask(get(f"{topic_name(values['topic']).path}/examinemessage?{query}"))
    for message in list(messages(answer))[:1]:
        _write(context, message)


def by_id(context: Context) -> None:
    values = context.values
    path = f"{topic_name(values['topic']).path}/ledger/{values['ledgerId']}/entry/{values['entryId']}"
    found = list(messages(context.connection.ask(get(path))))
    if not found:
        raise CommandFailed("Message not found")
    for message in found[:1]:
        _write(context, message, redelivery_count=0)


def _write(context: Context, message: Shown, redelivery_count: int | None = None) -> None:
    context.write(f"{'Batch ' if message.batched else ''}Message ID: {message.message_id}")
    context.write(f"Publish time: {message.publish_time}")
    context.write(f"Event time: {message.event_time}")
    if redelivery_count is not None:
        context.write(f"Redelivery count: {redelivery_count}")
    if message.properties:
        context.write("Properties:")
        for key, value in message.properties.items():
            context.write(f"{key}{GAP}{value}")
    context.write(dump(message.payload))


def messages(answer: Answer) -> Iterator[Shown]:
    """Messages of one entry; CommandFailed for a batch that is compressed or torn."""
    headers = answer.headers
    published, event = _milliseconds(headers.get("x-pulsar-publish-time")), _milliseconds(headers.get("x-pulsar-event-time"))
    where = headers.get("x-pulsar-message-id", "")
    properties = _properties(headers)
    if BATCH_MESSAGES not in headers:
        yield Shown(where, published, event, properties, answer.body, False)
        return
    if headers.get("x-pulsar-compression", "NONE") != "NONE":
        raise CommandFailed(f"{where}: a batch compressed with {headers['x-pulsar-compression']} cannot be shown")
    singles = messages_of_batch(answer.body, int(headers[BATCH_MESSAGES]))
    last = singles[-1].properties if singles else {}
    about = {**properties, "X-Pulsar-batch-size": headers.get(BATCH_BYTES, ""), "X-Pulsar-num-batch-message": str(len(singles))}
    for index, single in enumerate(singles):
        yield Shown(f"{where}:{index}", published, single.event_time or event, {**about, **last}, single.payload, True)


def _properties(headers: Mapping[str, str]) -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads(headers.get("x-pulsar-property") or "{}")
    return dict(sorted(found.items()))


def _milliseconds(text: str | None) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000) if text else 0
