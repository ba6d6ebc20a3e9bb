"""Access to the policies of one topic: the topic of a request, its document, and the policies in force. Owns nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ....policies.members import parse_quota, parse_retention
from ....policies.policies import BacklogQuota, EffectivePolicies, QuotaType, RetentionPolicy
from ....security.authorization.needs import Kind
from ....service.catalogue.catalogue import Catalogue
from ....service.errors import TopicNotFound
from ....service.lifecycle.partitioned_deletion import PartitionedDeletion
from ....service.lifecycle.topic_lifecycle import TopicLifecycle
from ....service.policies.change_events import NO_TOPIC_POLICIES
from ....service.policies.topic_policies import TopicPolicyDocuments
from ....service.settings import BrokerSettings
from ....service.topic_name import TopicName
from ...rest.answers import Refusal, json_answer, no_content
from ...rest.endpoints import Access, Endpoint, Handler, Query
from ...rest.names import TOPIC, topic_of

AUTHORITATIVE = Query("authoritative", bool, False)
_GLOBAL = Query("isGlobal", bool, False, "The policy of all clusters, rather than of this one.")
_APPLIED = Query("applied", bool, False, "The policy in force, also one of the namespace or the broker.")
READ, WRITE = (_GLOBAL, _APPLIED, AUTHORITATIVE), (_GLOBAL, AUTHORITATIVE)


@dataclass(frozen=True, slots=True)
class TopicPolicyAccess:
    """Access to the policies of the topics of one broker."""

    settings: BrokerSettings
    catalogue: Catalogue
    lifecycle: TopicLifecycle
    deletion: PartitionedDeletion
    documents: TopicPolicyDocuments

    async def existing(self, request: Request) -> TopicName:
        """With its policies known."""
        topic = self.whole_topic(request)
        await self.catalogue.namespaces.require(topic.namespace)
        if not (await self.catalogue.topic_exists(topic) or (await self.catalogue.partitioned_topics.get(topic)).partitions):
            raise TopicNotFound(str(topic))
        await self.documents.load(topic.namespace)
        return topic

    def whole_topic(self, request: Request) -> TopicName:
        """Refusal for a partition, and where topics have no policies (checkTopicLevelPolicyEnable)."""
        if not self.settings.has_topic_policies:
            raise Refusal(405, NO_TOPIC_POLICIES)
        topic = topic_of(request)
        if topic.is_partition:
            raise Refusal(412, "Not allowed to set/get topic policy for a partition")
        return topic

    def document(self, request: Request, topic: TopicName) -> Any:
        return self.documents.document(topic, is_global=request.state.query["isGlobal"])

    async def in_force(self, topic: TopicName) -> EffectivePolicies:
        """Returns the policies in force, of a partitioned topic those of its first partition."""
        partitions = (await self.catalogue.partitioned_topics.get(topic)).partitions
        loaded = await self.lifecycle.topic(topic.partition(0) if partitions else topic, may_create=False)
        return loaded.upkeep.policies

    async def quotas(self, request: Request, topic: TopicName) -> dict[QuotaType, BacklogQuota]:
        own = self.document(request, topic).get("backLogQuotaMap", {})
        return {**(await self.in_force(topic)).quotas, **{QuotaType(kind): parse_quota(value) for kind, value in own.items()}}

    async def retention(self, request: Request, topic: TopicName) -> RetentionPolicy:
        own = self.document(request, topic).get("retentionPolicies")
        return (await self.in_force(topic)).retention if own is None else parse_retention(own)

    async def number(self, request: Request, member: str, applied: Callable[[EffectivePolicies], int | None]) -> Response:
        topic = await self.existing(request)
        value = self.document(request, topic).get(member)
        if value is None and request.state.query["applied"]:
            value = applied(await self.in_force(topic))
        return no_content() if value is None else json_answer(value)

    async def change(self, request: Request, edit: Callable[[dict[str, Any]], Any]) -> Response:
        topic = await self.existing(request)
        await self.documents.change(topic, edit, is_global=request.state.query["isGlobal"])
        await self.deletion.require_still(topic)
        return no_content()


def endpoint(
    method: str, path: str, name: str, handler: Handler, query: tuple[Query, ...], *, summary: str = "", **types: Any
) -> Endpoint:
    """Endpoint of a topic's policy; `name` is Apache's PolicyName."""
    access = Access(Kind.TOPIC_POLICY, name, method != "GET")
    return Endpoint(method, f"{TOPIC}/{path}", handler, access, query, summary=summary, **types)
