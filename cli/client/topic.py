"""Connections to the broker of a topic, by its name: addresses, partitions, lookups, redirects, proxies."""

from cli.admin.request import topic_name
from cli.client.connection import PulsarConnection, with_advice
from cli.client.errors import ClientError, OwnerAway, RefusedByBroker, Unreachable
from cli.client_configuration import ClientConfiguration
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
)

REDIRECTS_MAX = 20
PARTITION = "-partition-"


def partitions_of(topic: str, configuration: ClientConfiguration) -> list[str]:
    """The topics that this name stands for: its partitions, or itself. ClientError, WrongUsage."""
    name = topic_name(topic)
    connection = any_connection(configuration)
    try:
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        asked = CommandPartitionedTopicMetadata(topic=str(name), request_id=connection.request_id())
        command.partition_metadata.CopyFrom(asked)
        answer = connection.ask(command, BaseCommand.PARTITIONED_METADATA_RESPONSE).partition_metadata_response
    finally:
        connection.close()
    if answer.response == answer.Failed or answer.message:
        raise RefusedByBroker(with_advice(f"{name}: {answer.message}"), answer.error)
    return [str(name.partition(index)) for index in range(answer.partitions)] or [str(name)]


def topics_of_namespace(namespace: str, pattern: str, configuration: ClientConfiguration) -> list[str]:
    """The persistent topics of a namespace; a broker may leave out those that the pattern does not fit. ClientError."""
    connection = any_connection(configuration)
    try:
        command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
        asked = CommandGetTopicsOfNamespace(request_id=connection.request_id(), namespace=namespace, topics_pattern=pattern)
        asked.mode = CommandGetTopicsOfNamespace.PERSISTENT
        command.get_topics_of_namespace.CopyFrom(asked)
        answer = connection.ask(command, BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    finally:
        connection.close()
    return list(answer.get_topics_of_namespace_response.topics)


def service_urls(configuration: ClientConfiguration) -> list[str]:
    """Each with its scheme: of `pulsar://a:6650,b:6650` the second has the first's. ClientError."""
    scheme, has_scheme, rest = configuration.broker_service_url.strip().rstrip("/").partition("://")
    hosts = [each.strip() for each in rest.split(",") if each.strip()]
    if not has_scheme or not hosts:
        told = configuration.broker_service_url
        raise ClientError(f"brokerServiceUrl: {told!r}: expected pulsar://host:port[,host:port...] or pulsar+ssl://...")
    return [f"{scheme}://{host}" for host in hosts]


def any_connection(configuration: ClientConfiguration) -> PulsarConnection:
    """Connection to the first of the addresses that answers. Unreachable when none does."""
    failures = []
    for url in service_urls(configuration):
        try:
            return PulsarConnection(url, configuration)
        except Unreachable as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    told = "; ".join(str(error) for error in failures)
    raise Unreachable(f"none of {len(failures)} addresses answers: {told}")


def connection_of(topic: str, configuration: ClientConfiguration) -> PulsarConnection:
    """Connection to the broker that serves the topic. ClientError."""
    connection, authoritative = any_connection(configuration), False
    for _ in range(REDIRECTS_MAX):
        url = connection.url
        try:
            found = _lookup(connection, topic, authoritative, configuration.listener_name)
        except BaseException:
            connection.close()
            raise
        target = (found.broker_service_url_tls if url.startswith("pulsar+ssl") else found.broker_service_url).rstrip("/")
        is_found = found.response == CommandLookupTopicResponse.Connect
        if is_found and target == url and not found.proxy_through_service_url:
            return connection
        connection.close()
        _check(found, topic, url, target)
        if is_found and found.proxy_through_service_url:
            return PulsarConnection(url, configuration, proxied_to=target.partition("://")[2])
        connection, authoritative = _elsewhere(topic, url, target, configuration), found.authoritative
        if is_found:
            return connection
    connection.close()
    raise ClientError(f"{topic}: more than {REDIRECTS_MAX} redirects")


def _check(found: CommandLookupTopicResponse, topic: str, url: str, target: str) -> None:
    """ClientError where the answer leads nowhere."""
    if found.response == CommandLookupTopicResponse.Failed:
        raise RefusedByBroker(with_advice(f"{topic}: {found.message}"), found.error)
    if not target:
        kind = "TLS" if url.startswith("pulsar+ssl") else "no TLS"
        raise ClientError(
            f"{topic}: {url} names a broker without an address for {kind}: it has no such port. Use the other kind of address "
            "(pulsar:// or pulsar+ssl://)"
        )


def _elsewhere(topic: str, url: str, target: str, configuration: ClientConfiguration) -> PulsarConnection:
    """Connection to the broker that another one named. OwnerAway says who did."""
    try:
        return PulsarConnection(target, configuration)
    except Unreachable as error:
        raise OwnerAway(
            f"{url} says that {target} serves {topic}, and that cannot be reached from here: {error}. Brokers are known "
            "elsewhere by their advertisedAddress or advertisedListeners"
        ) from None


def _lookup(connection: PulsarConnection, topic: str, authoritative: bool, listener_name: str) -> CommandLookupTopicResponse:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    lookup = CommandLookupTopic(topic=topic, request_id=connection.request_id(), authoritative=authoritative)
    if listener_name:
        lookup.advertised_listener_name = listener_name
    command.lookup_topic.CopyFrom(lookup)
    return connection.ask(command, BaseCommand.LOOKUP_RESPONSE).lookup_topic_response
