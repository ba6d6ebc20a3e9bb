"""Commands on many topics at once: lists of both domains, lookups of every partition, deleting by pattern or from a file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cli.admin.arguments import WrongUsage
from cli.admin.context import CommandFailed, Context
from cli.admin.http import Refused
from cli.admin.output import GAP, lines, plain
from cli.admin.request import DOMAINS, Request, TopicName, get, namespace_name, topic_name
from cli.admin.request import delete as deletion


def list_topics(context: Context) -> None:
    values = context.values
    domain, bundle = values.get("topic-domain"), values.get("bundle")
    found: list[str] = []
    for each in [domain] if domain else DOMAINS:
        query = "?" + (f"bundle={quote(bundle, safe='')}&" if bundle else "")
        found += context.ask(get(f"{each}/{_namespace(context)}{query}includeSystemTopic={_system(context)}"))
    _write(context, found)


def list_partitioned(context: Context) -> None:
    found: list[str] = []
    for each in DOMAINS:
        found += context.ask(get(f"{each}/{_namespace(context)}/partitioned?includeSystemTopic={_system(context)}"))
    _write(context, found)


def _namespace(context: Context) -> str:
    return namespace_name(context.values["namespace"])


def _system(context: Context) -> str:
    return str(bool(context.values.get("include-system-topic"))).lower()


def _write(context: Context, found: Sequence[str]) -> None:
    if context.as_json:
        context.write(str(list(found)).replace("'", '"'))
        return
    for line in lines(list(found)):
        context.write(line)


def partitioned_lookup(context: Context) -> None:
    """Prints the broker of each partition; with --sort-by-broker, the partitions of each broker."""
    topic = topic_name(context.values["topic"])
    count = int((context.ask(get(f"{topic.path}/partitions")) or {}).get("partitions", 0))
    if not count:
        raise CommandFailed(f"Topic {topic} is not a partitioned topic")
    brokers = {str(part): _broker(context, part) for part in (topic.partition(index) for index in range(count))}
    if not context.values["sort-by-broker"]:
        for name, broker in brokers.items():
            context.write(f"{name}{GAP}{broker}")
        return
    for broker in dict.fromkeys(brokers.values()):
        context.write(f"{broker}{GAP}{plain([name for name, each in brokers.items() if each == broker])}")


def _broker(context: Context, topic: TopicName) -> str:
    found: dict[str, Any] = context.ask(Request("GET", f"/lookup/v2/topic/{topic.path}"))
    return str(found.get("brokerUrl") or found.get("brokerUrlTls"))


def delete(context: Context) -> None:
    """One that could not be deleted is told, and the others are tried; the exit code is 0 then too, as Apache's."""
    values = context.values
    for name in _meant(context):
        topic = topic_name(name)
        try:
            context.ask(deletion(f"{topic.path}?force={str(values['force']).lower()}&deleteSchema=true"))
        except Refused as refused:
            context.write(f"Failed to delete topic: {name}. Exception: {_EXCEPTIONS.get(refused.status, _OTHER)}: {refused}")


_OTHER = "org.apache.pulsar.client.admin.PulsarAdminException"
_EXCEPTIONS = {
    401: f"{_OTHER}$NotAuthorizedException",
    403: f"{_OTHER}$NotAuthorizedException",
    404: f"{_OTHER}$NotFoundException",
    405: f"{_OTHER}$NotAllowedException",
    409: f"{_OTHER}$ConflictException",
    412: f"{_OTHER}$PreconditionFailedException",
    500: f"{_OTHER}$ServerSideErrorException",
}


def _meant(context: Context) -> list[str]:
    text, values = context.values["topic"], context.values
    if values["from-file"]:
        return [line.strip() for line in Path(text).read_text().splitlines() if line.strip()]
    if not values["regex"]:
        return [text]
    topic = topic_name(text)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise WrongUsage(f"{text}: not a regular expression: {error}") from None
    found = context.ask(get(f"{topic.domain}/{topic.tenant}/{topic.namespace}?includeSystemTopic=false"))
    return [name for name in found if pattern.fullmatch(name)]
