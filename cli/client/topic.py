"""From a topic's name to a connection to the broker that has it: partitions, lookups, redirects, proxies."""

from cli.admin.request import topic_name
from cli.client.connection import ClientError, PulsarConnection
from cli.client_configuration import ClientConfiguration
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
)

REDIRECTS_MAX = 20


def partitions_of(topic: str, configuration: ClientConfiguration) -> list[str]:
    """The topics that this name stands for: its partitions, or itself. ClientError."""
    connection = PulsarConnection(first_url(configuration), configuration)
    try:
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        command.partition_metadata.CopyFrom(CommandPartitionedTopicMetadata(topic=topic, request_id=connection.request_id()))
        answer = connection.ask(command, BaseCommand.PARTITIONED_METADATA_RESPONSE).partition_metadata_response
    finally:
        connection.close()
    if answer.message:
        raise ClientError(f"{topic}: {answer.message}")
    return [str(topic_name(topic).partition(index)) for index in range(answer.partitions)] or [topic]


def first_url(configuration: ClientConfiguration) -> str:
    """Of several addresses the first."""
    return configuration.broker_service_url.rstrip("/").split(",")[0]


def connection_of(topic: str, configuration: ClientConfiguration) -> PulsarConnection:
    """To the broker that serves the topic. ClientError."""
    url, authoritative = first_url(configuration), False
    for _ in range(REDIRECTS_MAX):
        connection = PulsarConnection(url, configuration)
        try:
            found = _lookup(connection, topic, authoritative)
        except BaseException:
            connection.close()
            raise
        target = found.broker_service_url_tls if url.startswith("pulsar+ssl") else found.broker_service_url
        if found.response == CommandLookupTopicResponse.Connect:
            if target.rstrip("/") == url:
                return connection
            connection.close()
            if found.proxy_through_service_url:
                return PulsarConnection(url, configuration, proxied_to=target.partition("://")[2])
            return PulsarConnection(target.rstrip("/"), configuration)
        connection.close()
        if found.response == CommandLookupTopicResponse.Failed:
            raise ClientError(f"{topic}: {found.message}")
        url, authoritative = target.rstrip("/"), found.authoritative
    raise ClientError(f"{topic}: more than {REDIRECTS_MAX} redirects")


def _lookup(connection: PulsarConnection, topic: str, authoritative: bool) -> CommandLookupTopicResponse:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    lookup = CommandLookupTopic(topic=topic, request_id=connection.request_id(), authoritative=authoritative)
    command.lookup_topic.CopyFrom(lookup)
    return connection.ask(command, BaseCommand.LOOKUP_RESPONSE).lookup_topic_response
