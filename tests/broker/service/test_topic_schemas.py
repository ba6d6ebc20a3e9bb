"""Strategy that holds for a topic's schemas, found without metadata: topic before namespace before broker."""

import asyncio
from typing import Any

import pytest

from broker.policies.documents import from_namespace_document, from_topic_document
from broker.policies.policies import NOTHING_SAID, TopicPolicies
from broker.schema.values import Strategy
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from broker.service.topic_schemas import TopicSchemas

TOPIC = TopicName.parse("t")


def strategy(own: TopicPolicies, namespace: TopicPolicies, **settings: Any) -> Strategy:
    async def said_of(_: TopicName) -> tuple[TopicPolicies, TopicPolicies]:
        return own, namespace

    registry: Any = None
    return asyncio.run(TopicSchemas(registry, BrokerSettings(**settings), said_of).strategy(TOPIC))


def test_a_topic_is_before_its_namespace_and_that_before_the_broker() -> None:
    own = from_topic_document({"schemaCompatibilityStrategy": "BACKWARD"})
    namespace = from_namespace_document({"schema_compatibility_strategy": "FORWARD"}, "c")
    assert strategy(own, namespace) == Strategy.BACKWARD
    assert strategy(NOTHING_SAID, namespace) == Strategy.FORWARD
    assert strategy(NOTHING_SAID, NOTHING_SAID) == Strategy.FULL
    assert strategy(NOTHING_SAID, NOTHING_SAID, schema_compatibility_strategy="ALWAYS_COMPATIBLE") == Strategy.ALWAYS_COMPATIBLE


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"schema_compatibility_strategy": "UNDEFINED"}, None),
        ({"schema_auto_update_compatibility_strategy": "AutoUpdateDisabled"}, "ALWAYS_INCOMPATIBLE"),
        (
            {"schema_compatibility_strategy": "UNDEFINED", "schema_auto_update_compatibility_strategy": "FullTransitive"},
            "FULL_TRANSITIVE",
        ),
        ({"schema_compatibility_strategy": "BACKWARD", "schema_auto_update_compatibility_strategy": "Full"}, "BACKWARD"),
        ({"schema_auto_update_compatibility_strategy": "of later versions"}, None),
    ],
)
def test_the_older_policy_of_a_namespace_holds_where_the_newer_says_nothing(document: Any, expected: str | None) -> None:
    assert from_namespace_document(document, "c").schema_compatibility == expected


def test_a_schema_is_demanded_where_any_level_demands_it() -> None:
    assert from_topic_document({"schemaValidationEnforced": False}).schema_validation_enforced is None
    assert from_topic_document({"schemaValidationEnforced": True}).schema_validation_enforced
    assert from_namespace_document({"schema_validation_enforced": True}, "c").schema_validation_enforced
    assert from_namespace_document({"is_allow_auto_update_schema": False}, "c").auto_update_schema is False
