"""CommandSubscribe to SubscribeRequest, checked. Pure; refusals are BrokerError."""

from wire.generated import pulsar_api_pb2 as api
from wire.int64 import signed

from ...errors import BrokerError, ServerError
from ...topic.contract import KeySharedMeta, KeySharedMode, SubscribeRequest, SubscriptionType
from .. import replies
from ..link import Link
from ..requests.checks import check_metadata, check_name, metadata_of

BATCHES_VERSION = 4
"""Older peers would take a batch for one message. Apache refuses them once it has seen a batch on the topic; here, where a
topic does not remember that, always."""
_HASH_MAX = 65535


def subscribe_request(
    command: api.CommandSubscribe, link: Link, metadata_bytes_max: int, *, may_create_subscription: bool
) -> SubscribeRequest:
    """Returns the request to the topic."""
    if link.protocol_version < BATCHES_VERSION:
        message = f"Consumer is not compatible with batch-message: version {BATCHES_VERSION}, not {link.protocol_version}"
        raise BrokerError(ServerError.UNSUPPORTED_VERSION, message)
    check_name("subscription name", command.subscription, may_be_empty=True)  # an empty one is the topic's to refuse
    check_name("consumer name", command.consumer_name, may_be_empty=True)
    metadata = metadata_of(command.metadata)
    check_metadata(metadata, metadata_bytes_max)
    is_reader_at = not command.durable and command.HasField("start_message_id")
    return SubscribeRequest(
        consumer_id=command.consumer_id,
        subscription=command.subscription,
        type=SubscriptionType(command.sub_type),
        consumer_name=command.consumer_name,
        priority_level=command.priority_level,
        durable=command.durable,
        start=replies.position_of(command.start_message_id) if is_reader_at else None,
        start_batch_index=command.start_message_id.batch_index if is_reader_at else -1,
        start_rollback_seconds=signed(command.start_message_rollback_duration_sec),
        from_earliest=command.initial_position == api.CommandSubscribe.Earliest,
        metadata=metadata,
        subscription_properties={pair.key: pair.value for pair in command.subscription_properties},
        key_shared=_key_shared(command.key_shared_meta) if command.HasField("key_shared_meta") else KeySharedMeta(),
        consumer_epoch=command.consumer_epoch if command.HasField("consumer_epoch") else None,
        read_compacted=command.read_compacted,
        address=link.address,
        client_version=link.client_version,
        auto_create_subscription=may_create_subscription,
        takes_any_schema=command.HasField("schema") and command.schema.type == api.Schema.AutoConsume,
    )


def _key_shared(meta: api.KeySharedMeta) -> KeySharedMeta:
    ranges = tuple((each.start, each.end) for each in meta.hash_ranges)
    if not all(0 <= start <= end <= _HASH_MAX for start, end in ranges):
        raise BrokerError(ServerError.CONSUMER_ASSIGN, f"Hash ranges must be inside 0..{_HASH_MAX}, start before end")
    return KeySharedMeta(KeySharedMode(meta.key_shared_mode), ranges, meta.allow_out_of_order_delivery)
