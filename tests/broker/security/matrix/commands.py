"""The commands of the matrix that need none before them, by name, on the topic and namespace of `roles`."""

from collections.abc import Mapping

from tests.broker.connection.peer import lookup, partitions, producer, subscribe
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

AUTHORIZATION_ERROR = 4


def commands(topic: str, subscription: str) -> Mapping[str, BaseCommand]:
    """One connection is asked each of them; ids are different."""
    namespace = topic.partition("://")[2].rpartition("/")[0]
    schema = api.Schema(name="s", schema_data=b"", type=api.Schema.String)
    return {
        "PRODUCER": producer(1, topic),
        "PRODUCER with initial_subscription_name": producer(2, topic, initial_subscription_name=subscription),
        "SUBSCRIBE": subscribe(3, topic, subscription="anybody's", sub_type=api.CommandSubscribe.Shared),
        "SUBSCRIBE to one that has a role": subscribe(
            4, topic, subscription=subscription, sub_type=api.CommandSubscribe.Shared
        ),
        "LOOKUP": lookup(topic),
        "PARTITIONED_METADATA": partitions(topic),
        "GET_TOPICS_OF_NAMESPACE": BaseCommand(
            type=BaseCommand.GET_TOPICS_OF_NAMESPACE,
            get_topics_of_namespace=api.CommandGetTopicsOfNamespace(
                request_id=5, namespace=namespace, mode=api.CommandGetTopicsOfNamespace.PERSISTENT
            ),
        ),
        "WATCH_TOPIC_LIST": BaseCommand(
            type=BaseCommand.WATCH_TOPIC_LIST,
            watch_topic_list=api.CommandWatchTopicList(
                request_id=6, watcher_id=1, namespace=namespace, topics_pattern=f"persistent://{namespace}/.*"
            ),
        ),
        "GET_SCHEMA": BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=api.CommandGetSchema(request_id=7, topic=topic)),
        "GET_OR_CREATE_SCHEMA": BaseCommand(
            type=BaseCommand.GET_OR_CREATE_SCHEMA,
            get_or_create_schema=api.CommandGetOrCreateSchema(request_id=8, topic=topic, schema=schema),
        ),
    }
