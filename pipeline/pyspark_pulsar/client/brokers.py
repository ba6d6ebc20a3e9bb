"""Names of topics and the broker of each: by the binary protocol, so that a service URL is enough."""

import re
import time
from collections.abc import Callable
from typing import TypeVar

from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    ServerError,
)

from ..errors import NoSuchTopic, Refused, Unreachable
from ..names import partitioned_name
from ..options import Access, SourceOptions
from .connection import Connection, Lost

_REDIRECTS_MAX = 20
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.1, 2.0

_Result = TypeVar("_Result")


def tried_again(what: str, access: Access, work: Callable[[], _Result]) -> _Result:
    """Result of `work`, tried again while it is Lost; Unreachable after the access's time. Other errors are raised at once."""
    until, pause = time.monotonic() + access.timeout_seconds, _PAUSE_SECONDS
    while True:
        try:
            return work()
        except Lost as error:
            if time.monotonic() + pause > until:
                raise Unreachable(f"{what}: {error}; asked again for {access.timeout_seconds:g} s") from None
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)


def topics_of(options: SourceOptions) -> list[str]:
    """All that is to be read, partitions by themselves, in order. NoSuchTopic, Refused, Unreachable."""
    access = options.access
    return tried_again(options.pattern or ", ".join(options.topics), access, lambda: _topics_of(options))


def _topics_of(options: SourceOptions) -> list[str]:
    connection = Connection(options.access.service_url, options.access)
    try:
        if options.pattern:
            return _matching(connection, options.pattern)
        found = []
        for topic in options.topics:
            count = _partitions(connection, topic)
            found += [f"{topic}-partition-{index}" for index in range(count)] or [topic]
        return found
    finally:
        connection.close()


def _partitions(connection: Connection, topic: str) -> int:
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    asked = CommandPartitionedTopicMetadata(
        topic=topic, request_id=connection.request_id(), metadata_auto_creation_enabled=False
    )
    command.partition_metadata.CopyFrom(asked)
    answer = connection.ask(command, BaseCommand.PARTITIONED_METADATA_RESPONSE).partition_metadata_response
    if answer.error in (ServerError.TopicNotFound, ServerError.MetadataError) and answer.message:
        raise NoSuchTopic(f"{topic}: {answer.message}")
    if answer.message:
        raise Refused(f"{topic}: {answer.message}")
    return answer.partitions


def _matching(connection: Connection, pattern: str) -> list[str]:
    """Topics of one namespace whose name without its partition matches as a whole, as Apache's consumers of patterns do it."""
    namespace = pattern.removeprefix("persistent://").rpartition("/")[0]
    command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
    asked = CommandGetTopicsOfNamespace(request_id=connection.request_id(), namespace=namespace)
    command.get_topics_of_namespace.CopyFrom(asked)
    answer = connection.ask(command, BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE).get_topics_of_namespace_response
    matches = re.compile(pattern)
    found = sorted(topic for topic in answer.topics if matches.fullmatch(partitioned_name(topic)))
    if not found:
        raise NoSuchTopic(f"option topicsPattern={pattern}: no topic of {namespace} has such a name")
    return found


def connection_to(topic: str, access: Access) -> Connection:
    """Connection to the broker that owns the topic. Lost, Refused."""
    url, authoritative, proxied_to = access.service_url, False, ""
    for _ in range(_REDIRECTS_MAX):
        connection = Connection(url, access, proxied_to)
        try:
            found = _lookup(connection, topic, authoritative)
        except BaseException:
            connection.close()
            raise
        target = (found.broker_service_url_tls if url.startswith("pulsar+ssl") else found.broker_service_url).rstrip("/")
        if found.response == CommandLookupTopicResponse.Connect and target == url:
            return connection
        connection.close()
        if found.response == CommandLookupTopicResponse.Connect:
            if found.proxy_through_service_url:
                return Connection(access.service_url, access, target.partition("://")[2])
            return Connection(target, access)
        url, authoritative = target, found.authoritative
    raise Lost(f"{topic}: more than {_REDIRECTS_MAX} redirects")


def _lookup(connection: Connection, topic: str, authoritative: bool) -> CommandLookupTopicResponse:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    asked = CommandLookupTopic(topic=topic, request_id=connection.request_id(), authoritative=authoritative)
    command.lookup_topic.CopyFrom(asked)
    found = connection.ask(command, BaseCommand.LOOKUP_RESPONSE).lookup_topic_response
    if found.response == CommandLookupTopicResponse.Failed:
        said = f"{topic}: {ServerError.Name(found.error)}: {found.message}"
        if found.error in (ServerError.ServiceNotReady, ServerError.UnknownError):
            raise Lost(said)
        raise Refused(said)
    return found
