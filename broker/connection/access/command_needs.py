"""Permissions that each command needs, where authorization is on. A command that is not listed is denied to all. Pure.

Apache's ServerCnx, command by command. Two commands need more here: Apache lets every authenticated client read and add schemas
of any topic, and have the markers of transactions written to any.
"""

from collections.abc import Callable, Mapping

from wire.generated.pulsar_api_pb2 import BaseCommand

from ...security.authorization.needs import Kind, Need, namespace_need, topic_need
from ...service.topic_name import NamespaceName, TopicName

Needs = tuple[Need, ...]


def _topic(operation: str, topic: str, subscription: str = "") -> Need:
    return topic_need(operation, str(TopicName.parse(topic)), subscription)


def _of_producer(command: BaseCommand) -> Needs:
    """A subscription that it wants to have with the topic is a matter of its own."""
    asked = command.producer
    needs = (_topic("PRODUCE", asked.topic),)
    if not asked.initial_subscription_name:
        return needs
    return (*needs, _topic("SUBSCRIBE", asked.topic, asked.initial_subscription_name))


def _of_subscribe(command: BaseCommand) -> Needs:
    return (_topic("CONSUME", command.subscribe.topic, command.subscribe.subscription),)


def _of_partitions(command: BaseCommand) -> Needs:
    """Permission to produce on each topic: a peer that may not publish there must not have our markers written there."""
    return tuple(_topic("PRODUCE", topic) for topic in command.add_partition_to_txn.partitions)


def _of_subscriptions(command: BaseCommand) -> Needs:
    named = command.add_subscription_to_txn.subscription
    return tuple(_topic("CONSUME", each.topic, each.subscription) for each in named)


def _list(namespace: str) -> Needs:
    return (namespace_need("GET_TOPICS", str(NamespaceName.parse(namespace))),)


NEEDS: Mapping[int, Callable[[BaseCommand], Needs]] = {
    BaseCommand.PRODUCER: _of_producer,
    BaseCommand.SUBSCRIBE: _of_subscribe,
    BaseCommand.LOOKUP: lambda command: (_topic("LOOKUP", command.lookup_topic.topic),),
    BaseCommand.PARTITIONED_METADATA: lambda command: (_topic("LOOKUP", command.partition_metadata.topic),),
    BaseCommand.GET_TOPICS_OF_NAMESPACE: lambda command: _list(command.get_topics_of_namespace.namespace),
    BaseCommand.WATCH_TOPIC_LIST: lambda command: _list(command.watch_topic_list.namespace),
    BaseCommand.GET_SCHEMA: lambda command: (_topic("LOOKUP", command.get_schema.topic),),
    BaseCommand.GET_OR_CREATE_SCHEMA: lambda command: (_topic("PRODUCE", command.get_or_create_schema.topic),),
    BaseCommand.ADD_PARTITION_TO_TXN: _of_partitions,
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN: _of_subscriptions,
    BaseCommand.END_TXN_ON_PARTITION: lambda command: (Need(Kind.SUPER_USER),),
    BaseCommand.END_TXN_ON_SUBSCRIPTION: lambda command: (Need(Kind.SUPER_USER),),
}
"""BrokerError for a name that is none."""

OF_ITS_OWN = frozenset(
    {
        BaseCommand.CONNECT,
        BaseCommand.AUTH_RESPONSE,
        BaseCommand.PING,
        BaseCommand.PONG,
        BaseCommand.SEND,
        BaseCommand.CLOSE_PRODUCER,
        BaseCommand.FLOW,
        BaseCommand.ACK,
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        BaseCommand.UNSUBSCRIBE,
        BaseCommand.SEEK,
        BaseCommand.GET_LAST_MESSAGE_ID,
        BaseCommand.CONSUMER_STATS,
        BaseCommand.CLOSE_CONSUMER,
        BaseCommand.WATCH_TOPIC_LIST_CLOSE,
    }
)
"""About the connection itself, or about a producer, consumer or watcher that this connection has made and was allowed to."""

FOR_OWNERS = frozenset({BaseCommand.TC_CLIENT_CONNECT_REQUEST, BaseCommand.NEW_TXN, BaseCommand.END_TXN})
"""Every authenticated client may have transactions, as in Apache; their handler asks the coordinator for the owner."""

ANSWERED_AT_ONCE = frozenset(
    {
        BaseCommand.GET_SCHEMA,
        BaseCommand.GET_OR_CREATE_SCHEMA,
        BaseCommand.END_TXN_ON_PARTITION,
        BaseCommand.END_TXN_ON_SUBSCRIPTION,
    }
)
"""Commands whose handlers may act before anything can be waited for: handlers are called once access is allowed."""
