"""Messages of `__change_events`: one per change of a topic's policies, the whole document each time. Pure.

The key is the topic's name, with `__G__` before it for the policies of all clusters; a message without a value deletes. The
last message of a key is what holds (SystemTopicBasedTopicPoliciesService, TopicPoliciesService.getEventKey).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import message_metadata, payload_section, split_section
from wire.run import Buffer

from ..topic_name import NamespaceName, TopicName
from .topic_policies_avro import BadAvro, decode, encode
from .topic_policies_schema import PULSAR_EVENT

LOCAL_NAME = "__change_events"
_GLOBAL_PREFIX = "__G__"


class UnreadableEvent(Exception):
    """A message that is no event of topic policies as Apache 4.0 writes it."""


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """`document` None: deleted. Members are Apache's TopicPolicies; null members there are missing here."""

    topic: str
    is_global: bool
    document: Mapping[str, Any] | None


def change_events_of(namespace: NamespaceName) -> TopicName:
    return TopicName("persistent", namespace, LOCAL_NAME, -1)


def new_document(*, is_global: bool) -> dict[str, Any]:
    """Returns the fields that Apache writes beside the first policy of a topic."""
    return {"backLogQuotaMap": {}, "isGlobal": is_global, "subscriptionPolicies": {}, "subscriptionTypesEnabled": []}


def message_of(event: PolicyEvent, cluster: str, producer: str, sequence_id: int, now_ms: int) -> bytes:
    """A payload section. Policies of this cluster alone are not replicated anywhere else. BadAvro names a bad field."""
    metadata = MessageMetadata(producer_name=producer, sequence_id=sequence_id, publish_time=now_ms)
    metadata.partition_key = (_GLOBAL_PREFIX if event.is_global else "") + event.topic
    if event.document is None:
        metadata.null_value = True
        return payload_section(metadata, b"")
    payload = encode(PULSAR_EVENT, _event(event, cluster))
    metadata.uncompressed_size = len(payload)
    return payload_section(metadata, payload)


def _event(event: PolicyEvent, cluster: str) -> dict[str, Any]:
    topic = TopicName.parse(event.topic)
    return {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "replicateTo": None if event.is_global else [cluster],
        "topicPoliciesEvent": {
            "domain": topic.domain,
            "tenant": topic.namespace.tenant,
            "namespace": topic.namespace.local_name,
            "topic": topic.local_name,
            "policies": event.document,
        },
    }


def event_of(section: Buffer) -> PolicyEvent | None:
    """None for other messages: a marker, or an event of another kind. UnreadableEvent."""
    try:
        parts = split_section(section)
        metadata = message_metadata(parts)
        if metadata.HasField("marker_type"):
            return None
        if metadata.HasField("num_messages_in_batch") or metadata.compression or metadata.encryption_keys:
            raise UnreadableEvent(f"the message of {metadata.producer_name} is batched, compressed or encrypted")
        key = metadata.partition_key
        topic = key.removeprefix(_GLOBAL_PREFIX)
        if metadata.null_value or not parts.payload:
            return PolicyEvent(topic, key != topic, None) if topic else None
        found = decode(PULSAR_EVENT, parts.payload)
    except (MalformedPayload, BadAvro) as error:
        raise UnreadableEvent(str(error)) from error
    return _policy_event(found)


def _policy_event(found: Mapping[str, Any]) -> PolicyEvent | None:
    about = found.get("topicPoliciesEvent")
    if found.get("eventType") != "TOPIC_POLICY" or about is None:
        return None
    names = {name: about.get(name, "") for name in ("domain", "tenant", "namespace", "topic")}
    document = about.get("policies")
    is_deleted = found.get("actionType") == "DELETE" or document is None
    is_global = bool((document or {}).get("isGlobal"))
    return PolicyEvent("{domain}://{tenant}/{namespace}/{topic}".format(**names), is_global, None if is_deleted else document)
