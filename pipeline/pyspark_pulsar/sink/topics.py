"""Questions of a sink before it writes to a topic: the number of partitions, and whether the topic deduplicates."""

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandPartitionedTopicMetadata, ServerError

from ..client.admin import asked
from ..client.brokers import tried_again
from ..client.connection import Connection, Lost
from ..errors import NoSuchTopic, Refused
from ..names import admin_path
from ..options import Access
from .errors import NotDeduplicated

_THERE_IS_NO = (ServerError.TopicNotFound, ServerError.MetadataError)


def partition_count(topic: str, access: Access, creates: bool) -> int:
    """0: it has none, and is written itself. NoSuchTopic, Refused, Unreachable."""
    return tried_again(topic, access, lambda: _partition_count(topic, access, creates))


def _partition_count(topic: str, access: Access, creates: bool) -> int:
    connection = Connection(access.service_url, access)
    try:
        request = CommandPartitionedTopicMetadata(
            topic=topic, request_id=connection.request_id(), metadata_auto_creation_enabled=creates
        )
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=request)
        found = connection.ask(command, BaseCommand.PARTITIONED_METADATA_RESPONSE).partition_metadata_response
    finally:
        connection.close()
    if not found.message:
        return int(found.partitions)
    if found.error in _THERE_IS_NO:
        raise NoSuchTopic(f"{topic}: {found.message}. Create it first, or let brokers do it: createTopic=true")
    if found.error == ServerError.ServiceNotReady:
        raise Lost(f"{topic}: {found.message}")
    raise Refused(f"{topic}: {found.message}")


def deduplicates(topic: str, access: Access) -> bool:
    """Whether a loaded topic deduplicates."""
    return _deduplication(topic, access) == "Enabled"


def check_deduplicates(topic: str, access: Access) -> None:
    """NotDeduplicated with the remedy. The topic is there already, and loaded."""
    found = _deduplication(topic, access)
    if found != "Enabled":
        raise NotDeduplicated(
            f"{topic}: deduplication is {found}, so that guarantee=deduplication cannot be kept. Turn it on "
            "(pulsar-admin topics set-deduplication -e TOPIC, or namespaces set-deduplication), or choose another guarantee"
        )


def _deduplication(topic: str, access: Access) -> str:
    stats = asked(topic, access, f"/admin/v2/{admin_path(topic)}/stats")
    return str(stats.get("deduplicationStatus", "unknown"))
