"""The commands that the broker sends, as frames. Pure. Required fields are given even when they are 0; -1 is 2 ** 64 - 1."""

from typing import cast

from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import WORD_MAX, signed, unsigned
from wire.position import Position

from ..errors import BrokerError, ServerError
from ..schema.values import VersionedSchema, version_bytes
from ..service.addresses import Advertised, Answer
from ..topic.contract import LastMessage

NO_REQUEST = WORD_MAX
"""request_id of frames that answer no request."""


def wire_error(code: ServerError) -> api.ServerError:
    """The generated enum has the same numbers, but is no IntEnum."""
    return cast(api.ServerError, int(code))


def position_of(message_id: api.MessageIdData) -> Position:
    return Position(signed(message_id.ledger_id), signed(message_id.entry_id))


def message_id(position: Position, partition: int = -1, batch_index: int = -1) -> api.MessageIdData:
    return api.MessageIdData(
        ledger_id=unsigned(position.ledger_id),
        entry_id=unsigned(position.entry_id),
        partition=partition,
        batch_index=batch_index,
    )


def success(request_id: int) -> bytes:
    return encode(BaseCommand(type=BaseCommand.SUCCESS, success=api.CommandSuccess(request_id=request_id)))


def error(request_id: int, failure: BrokerError) -> bytes:
    told = api.CommandError(request_id=request_id, error=wire_error(failure.code), message=failure.message)
    return encode(BaseCommand(type=BaseCommand.ERROR, error=told))


def connected(server_version: str, protocol_version: int, max_message_size: int, *, watchers: bool) -> bytes:
    """Without `watchers` (enableBrokerTopicListWatcher) clients ask for the list of topics from time to time instead."""
    flags = api.FeatureFlags(
        supports_topic_watchers=watchers,
        supports_topic_watcher_reconcile=watchers,
        supports_get_partitioned_metadata_without_auto_creation=True,
        supports_repl_dedup_by_lid_and_eid=True,
    )
    told = api.CommandConnected(
        server_version=server_version,
        protocol_version=protocol_version,
        max_message_size=max_message_size,
        feature_flags=flags,
    )
    return encode(BaseCommand(type=BaseCommand.CONNECTED, connected=told))


def auth_challenge(server_version: str, protocol_version: int, method: str, challenge: bytes) -> bytes:
    """AUTH_CHALLENGE."""
    data = api.AuthData(auth_method_name=method, auth_data=challenge)
    told = api.CommandAuthChallenge(server_version=server_version, protocol_version=protocol_version, challenge=data)
    return encode(BaseCommand(type=BaseCommand.AUTH_CHALLENGE, auth_challenge=told))


def denied(command: BaseCommand, failure: BrokerError) -> bytes:
    """Refusal of a command whose handler was not called, in the response that the command has."""
    if command.type == BaseCommand.GET_SCHEMA:
        return no_schema(command.get_schema.request_id, failure)
    if command.type == BaseCommand.GET_OR_CREATE_SCHEMA:
        return schema_refused(command.get_or_create_schema.request_id, failure)
    body = next(value for field, value in command.ListFields() if field.number == command.type)
    return error(body.request_id, failure)


def partitions(request_id: int, count: int) -> bytes:
    told = api.CommandPartitionedTopicMetadataResponse(
        request_id=request_id, partitions=count, response=api.CommandPartitionedTopicMetadataResponse.Success
    )
    return encode(BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=told))


def partitions_failed(request_id: int, failure: BrokerError) -> bytes:
    told = api.CommandPartitionedTopicMetadataResponse(
        request_id=request_id,
        response=api.CommandPartitionedTopicMetadataResponse.Failed,
        error=wire_error(failure.code),
        message=failure.message,
    )
    return encode(BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=told))


def lookup(request_id: int, found: Answer) -> bytes:
    """Always authoritative: the broker named in a redirect was chosen, and takes the topic if it has no owner."""
    kind = api.CommandLookupTopicResponse.Redirect if found.is_redirect else api.CommandLookupTopicResponse.Connect
    told = api.CommandLookupTopicResponse(
        request_id=request_id,
        response=kind,
        broker_service_url=found.address.broker_url or None,
        broker_service_url_tls=found.address.broker_url_tls or None,
        authoritative=True,
        proxy_through_service_url=False,
    )
    return encode(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookup_topic_response=told))


def lookup_failed(request_id: int, failure: BrokerError) -> bytes:
    told = api.CommandLookupTopicResponse(
        request_id=request_id,
        response=api.CommandLookupTopicResponse.Failed,
        error=wire_error(failure.code),
        message=failure.message,
    )
    return encode(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookup_topic_response=told))


def producer_success(
    request_id: int, name: str, last_sequence_id: int, topic_epoch: int | None, *, ready: bool, schema_version: bytes = b""
) -> bytes:
    """`last_sequence_id` is -1 without deduplication; an empty schema version is there all the same, as Apache sends it."""
    told = api.CommandProducerSuccess(
        request_id=request_id,
        producer_name=name,
        last_sequence_id=last_sequence_id,
        schema_version=schema_version,
        topic_epoch=topic_epoch,
        producer_ready=ready,
    )
    return encode(BaseCommand(type=BaseCommand.PRODUCER_SUCCESS, producer_success=told))


def send_error(producer_id: int, sequence_id: int, code: ServerError, message: str) -> bytes:
    told = api.CommandSendError(producer_id=producer_id, sequence_id=sequence_id, error=wire_error(code), message=message)
    return encode(BaseCommand(type=BaseCommand.SEND_ERROR, send_error=told))


def close_producer(producer_id: int, heir: Advertised | None = None) -> bytes:
    """`heir`: where the client finds its topic again without a lookup."""
    told = api.CommandCloseProducer(producer_id=producer_id, request_id=NO_REQUEST)
    _assign(told, heir)
    return encode(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=told))


def close_consumer(consumer_id: int, heir: Advertised | None = None) -> bytes:
    """CLOSE_CONSUMER, like `close_producer`."""
    told = api.CommandCloseConsumer(consumer_id=consumer_id, request_id=NO_REQUEST)
    _assign(told, heir)
    return encode(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=told))


def _assign(told: api.CommandCloseProducer | api.CommandCloseConsumer, heir: Advertised | None) -> None:
    if heir is not None and heir.broker_url:
        told.assigned_broker_service_url = heir.broker_url
    if heir is not None and heir.broker_url_tls:
        told.assigned_broker_service_url_tls = heir.broker_url_tls


def active_consumer_change(consumer_id: int, is_active: bool) -> bytes:
    told = api.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=is_active)
    return encode(BaseCommand(type=BaseCommand.ACTIVE_CONSUMER_CHANGE, active_consumer_change=told))


def reached_end_of_topic(consumer_id: int) -> bytes:
    told = api.CommandReachedEndOfTopic(consumer_id=consumer_id)
    return encode(BaseCommand(type=BaseCommand.REACHED_END_OF_TOPIC, reached_end_of_topic=told))


def ack_response(ack: api.CommandAck, failure: BrokerError | None) -> bytes:
    told = api.CommandAckResponse(consumer_id=ack.consumer_id, request_id=ack.request_id)
    if ack.HasField("txnid_most_bits") or ack.HasField("txnid_least_bits"):
        told.txnid_most_bits, told.txnid_least_bits = ack.txnid_most_bits, ack.txnid_least_bits
    if failure is not None:
        told.error, told.message = wire_error(failure.code), failure.message
    return encode(BaseCommand(type=BaseCommand.ACK_RESPONSE, ack_response=told))


def last_message_id(request_id: int, last: LastMessage, partition: int) -> bytes:
    """Last message id; -1, -1 for an empty topic, in any ledger (ServerCnx.getLargestBatchIndexWhenPossible)."""
    position = last.position if last.position.entry_id >= 0 else Position(-1, -1)
    told = api.CommandGetLastMessageIdResponse(
        request_id=request_id, last_message_id=message_id(position, partition, last.batch_index)
    )
    if last.mark_delete is not None:
        told.consumer_mark_delete_position.CopyFrom(message_id(last.mark_delete))
    return encode(BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, get_last_message_id_response=told))


def schema_found(request_id: int, found: VersionedSchema, name: str) -> bytes:
    schema = api.Schema(
        name=name,
        schema_data=found.schema.data,
        type=api.Schema.Type.Name(found.schema.type),
        properties=[{"key": key, "value": value} for key, value in found.schema.properties.items()],
    )
    told = api.CommandGetSchemaResponse(request_id=request_id, schema=schema, schema_version=version_bytes(found.version))
    return encode(BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, get_schema_response=told))


def no_schema(request_id: int, failure: BrokerError) -> bytes:
    told = api.CommandGetSchemaResponse(
        request_id=request_id, error_code=wire_error(failure.code), error_message=failure.message
    )
    return encode(BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, get_schema_response=told))


def schema_refused(request_id: int, failure: BrokerError) -> bytes:
    told = api.CommandGetOrCreateSchemaResponse(
        request_id=request_id, error_code=wire_error(failure.code), error_message=failure.message
    )
    return encode(BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE, get_or_create_schema_response=told))


def schema_made(request_id: int, version: bytes) -> bytes:
    """Empty: the topic has no schema."""
    told = api.CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=version)
    return encode(BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE, get_or_create_schema_response=told))
